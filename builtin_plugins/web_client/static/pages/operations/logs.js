/** The last log lines of a service, and new ones. */

import { html, useEffect, useRef, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { query, setQuery } from "../../lib/router.js";
import { eventsOf } from "../../lib/stream.js";
import { t } from "../../lib/words.js";
import { Failure, Loaded } from "../../parts/basics.js";
import { Check, Field } from "../../parts/forms.js";
import { OperationsHead } from "./tabs.js";

const TAIL = 500;
const KEPT = 2_000;

export default function Logs() {
  const found = useResource((signal) => api.bundles({ signal }));
  return html`<div class="page">
    <${OperationsHead} current="/operations/logs" about=${t("What the services write about themselves. Only administrators of the platform see it.")} />
    <${Loaded} of=${found}>${({ bundles }) => html`<${Service} names=${[...new Set(["api-gateway", ...bundles.flatMap((bundle) => bundle.claims)])]} />`}<//>
  </div>`;
}

function Service({ names }) {
  const name = query.value.get("service") ?? names[0];
  const [follow, setFollow] = useState(true);
  return html`<div class="filters">
      <${Field} as="select" label=${t("Service")} value=${name} onInput=${(value) => setQuery({ service: value })}>${names.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}<//>
      <${Check} label=${t("Follow")} checked=${follow} onChange=${setFollow} />
    </div>
    <${Lines} key=${`${name} ${follow}`} name=${name} follow=${follow} />`;
}

function Lines({ name, follow }) {
  const [lines, setLines] = useState([]);
  const [error, setError] = useState(null);
  const box = useRef(null);
  useEffect(() => {
    const stop = new AbortController();
    read(name, follow, stop.signal, (more) => setLines((was) => [...was, ...more].slice(-KEPT))).catch((problem) => problem.name === "AbortError" || setError(problem));
    return () => stop.abort();
  }, []);
  useEffect(() => {
    box.current.scrollTop = box.current.scrollHeight;
  }, [lines]);
  return html`<${Failure} error=${error} />
    <pre class="log" ref=${box} tabindex="0" role="log" aria-label=${t("Log of {name}", { name })}>${lines.map((line) => html`<span>${`${line.text}\n`}</span>`)}${!lines.length && !error && html`<span class="muted">${t("Nothing has been written yet.")}</span>`}</pre>`;
}

async function read(name, follow, signal, take) {
  const place = { name, signal };
  if (!follow) return take((await api.logs({ ...place, query: { tail: TAIL } })).lines);
  const answer = await api.followLogs({ ...place, query: { tail: TAIL, follow: true } });
  for await (const { data } of eventsOf(answer)) take([data]);
  return undefined;
}
