/** Language models: list, try, pull, and limit them. */

import { html, useState } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { useAction, usePolling, useResource } from "../../lib/resource.js";
import { query, setQuery } from "../../lib/router.js";
import { isAdmin } from "../../lib/session.js";
import { ago, bytes, t } from "../../lib/words.js";
import { Badge, Button, Empty, Failure, Loaded, Meter } from "../../parts/basics.js";
import { Field, Form } from "../../parts/forms.js";
import { Dialog } from "../../parts/layers.js";
import { Connections } from "./connections.js";
import { Model } from "./model.js";
import { OperationsHead } from "./tabs.js";

const PAUSE = 1_500;
const GOING = ["queued", "running"];

async function load(signal) {
  const none = { items: [] };
  const [models, pulls, servers] = await Promise.all([
    everything(api.models, { signal }),
    isAdmin.value ? api.pulls({ query: { limit: 20 }, signal }) : none,
    isAdmin.value ? api.modelConnections({ signal }) : none,
  ]);
  return { models, pulls: pulls.items, canPull: servers.items.some((server) => server.is_used && server.can_pull) };
}

export default function Models() {
  const found = useResource(load);
  usePolling(found.reload, PAUSE, found.data?.pulls.some((pull) => GOING.includes(pull.status)) ?? false);
  const shown = query.value.get("model");
  const add = found.data?.canPull && html`<${Button} kind="primary" icon="download" onClick=${() => setQuery({ pull: 1 })}>${t("Pull a model")}<//>`;
  return html`<div class="page">
    <${OperationsHead} current="/operations/models" about=${t("Language models that write answers. Without one, answers quote the documents.")}>${add}<//>
    ${isAdmin.value && html`<${Connections} onChanged=${found.reload} />`}
    <${Loaded} of=${found}>${({ models, pulls }) => html`
      <${Pulls} pulls=${pulls} onChanged=${found.reload} />
      ${models.length ? html`<${List} models=${models} />` : html`<${Empty} icon="operations" title=${t("No models")}>${isAdmin.value ? t("Connect a model server above, or put a GGUF file into the folder “models” of the server’s data.") : t("Ask an administrator to connect a model server.")}<//>`}
      ${shown && models.some((model) => model.id === shown) && html`<${Model} model=${models.find((model) => model.id === shown)} onChanged=${found.reload} onClose=${() => setQuery({ model: null })} />`}
    `}<//>
    ${query.value.get("pull") === "1" && html`<${Pull} onBegun=${found.reload} onClose=${() => setQuery({ pull: null })} />`}
  </div>`;
}

const TONES = { ready: "good", loading: "accent", error: "bad" };
const WORDS = { ready: "Ready", loading: "Loading", error: "Failed" };

function List({ models }) {
  return html`<div class="table-box" tabindex="0" role="region" aria-label=${t("Models")}><table>
    <thead><tr><th>${t("Name")}</th><th>${t("Runs at")}</th><th>${t("Size")}</th><th>${t("State")}</th><th><span class="hidden">${t("Actions")}</span></th></tr></thead>
    <tbody>${models.map((model) => html`<tr key=${model.id}><td><span class="name">${model.name}</span></td><td>${model.runtime}</td><td>${model.size}</td>
      <td><${Badge} tone=${TONES[model.status]}>${t(WORDS[model.status])}<//></td>
      <td class="right"><${Button} small onClick=${() => setQuery({ model: model.id })}>${t("Details")}<//></td></tr>`)}</tbody></table></div>`;
}

function Pulls({ pulls, onChanged }) {
  const shown = pulls.filter((pull) => GOING.includes(pull.status) || pull.status === "failed").slice(0, 5);
  if (!shown.length) return null;
  return html`<section class="stack close" aria-label=${t("Pulls")}>${shown.map((pull) => html`<${PullRow} key=${pull.id} pull=${pull} onChanged=${onChanged} />`)}</section>`;
}

function PullRow({ pull, onChanged }) {
  const cancel = useAction(async () => {
    await api.cancelPull({ pull_id: pull.id });
    onChanged();
  });
  const going = GOING.includes(pull.status);
  const size = pull.total_bytes ? t("{done} of {total}", { done: bytes(pull.completed_bytes), total: bytes(pull.total_bytes) }) : "";
  return html`<div class="panel">
    <div class="row"><strong class="grow">${pull.model}</strong><span class="muted">${going ? size || pull.stage : ago(pull.ended_at ?? pull.created_at)}</span>
      ${going && html`<${Button} small busy=${cancel.busy} onClick=${cancel.run}>${t("Cancel")}<//>`}</div>
    ${going ? html`<${Meter} value=${pull.completed_bytes} max=${pull.total_bytes} label=${pull.model} />` : html`<p class="bad">${pull.error}</p>`}
    <${Failure} error=${cancel.error} />
  </div>`;
}

function Pull({ onBegun, onClose }) {
  const [name, setName] = useState("");
  const action = useAction(async () => {
    await api.pullModel({ body: { model_id: name.trim(), wait: false } });
    onBegun();
    onClose();
  });
  return html`<${Dialog} title=${t("Pull a model")} onClose=${onClose}>
    <${Form} action=${action} submit=${t("Pull")} onCancel=${onClose} disabled=${!name.trim()}>
      <${Field} label=${t("Name of the model")} value=${name} onInput=${setName} placeholder="llama3.2" hint=${t("As the model server names it. The download goes on if you leave this page.")} error=${action.error?.fields?.model_id} required autofocus />
    <//>
  <//>`;
}
