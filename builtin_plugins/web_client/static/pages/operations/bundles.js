/** Bundles: services that are switched on and off together. */

import { html } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction, useResource } from "../../lib/resource.js";
import { isAdmin } from "../../lib/session.js";
import { t } from "../../lib/words.js";
import { Badge, Button, Failure, Loaded } from "../../parts/basics.js";
import { say } from "../../parts/layers.js";
import { OperationsHead } from "./tabs.js";

async function load(signal) {
  const [{ bundles }, now] = await Promise.all([api.bundles({ signal }), api.bundlesNow({ signal })]);
  const services = new Map(now.bundles.flatMap((bundle) => bundle.services.map((service) => [service.name, service])));
  return { bundles, services };
}

export default function Bundles() {
  const found = useResource(load);
  return html`<div class="page">
    <${OperationsHead} current="/operations/bundles" about=${t("Services that are switched on and off together.")} />
    <${Loaded} of=${found}>${({ bundles, services }) => html`<div class="cards">${bundles.map((bundle) => html`<${Tile} key=${bundle.name} bundle=${bundle} services=${services} onChanged=${found.reload} />`)}</div>`}<//>
  </div>`;
}

function Tile({ bundle, services, onChanged }) {
  const turn = useAction(async () => {
    const done = await (bundle.enabled ? api.disableBundle : api.enableBundle)({ name: bundle.name });
    if (done.errors.length) say(done.errors.join("; "), "bad");
    await onChanged();
  });
  return html`<article class="tile">
    <div class="row"><h2 class="grow">${bundle.name}</h2>${bundle.enabled ? html`<${Badge} tone="good">${t("On")}<//>` : html`<${Badge}>${t("Off")}<//>`}</div>
    <ul class="list">${bundle.services.map(({ name }) => html`<li class="row" key=${name}><span class="grow">${name}</span><${Now} service=${services.get(name)} /></li>`)}</ul>
    <${Failure} error=${turn.error} />
    <div class="tile-foot">${bundle.core ? html`<span>${t("Always on")}</span>` : isAdmin.value && html`<${Button} small busy=${turn.busy} onClick=${turn.run}>${bundle.enabled ? t("Turn off") : t("Turn on")}<//>`}</div>
  </article>`;
}

function Now({ service }) {
  if (!service?.running) return html`<${Badge}>${t("Not running")}<//>`;
  return service.healthy ? html`<${Badge} tone="good">${t("Healthy")}<//>` : html`<${Badge} tone="bad">${t("Unhealthy")}<//>`;
}
