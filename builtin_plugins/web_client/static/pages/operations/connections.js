/** Model servers: found ones to use, connected ones to test and disconnect, and the models that answer by default. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction, useResource } from "../../lib/resource.js";
import { plural, t } from "../../lib/words.js";
import { Badge, Button, Failure, Loaded, Notice } from "../../parts/basics.js";
import { Field, Form } from "../../parts/forms.js";
import { Confirm, say } from "../../parts/layers.js";
import { Connect, nameOf } from "./connect.js";

async function load(signal) {
  const [connections, near, defaults, choices] = await Promise.all([
    api.modelConnections({ signal }),
    api.modelServersNearby({ signal }),
    api.defaultModels({ signal }),
    api.modelChoices({ signal }),
  ]);
  return { connections, near: near.items, defaults, choices };
}

export function Connections({ onChanged }) {
  const found = useResource(load);
  const [dialog, setDialog] = useState(null);
  const changed = () => {
    found.reload();
    onChanged();
  };
  return html`<${Loaded} of=${found} lines=${3}>${({ connections: { items, connectable }, near, defaults, choices }) => html`
    <section class="stack" aria-labelledby="servers">
      <div class="row"><h2 id="servers" class="grow">${t("Model servers")}</h2>
        ${connectable !== "none" && html`<${Button} icon="plus" onClick=${() => setDialog({ connect: true })}>${t("Connect a server")}<//>`}</div>
      ${connectable === "none" && html`<p class="muted">${t("On this server, only the operator’s settings name model servers.")}</p>`}
      ${near.filter((server) => !server.connection).map((server) => html`<${Nearby} key=${server.url} server=${server} names=${items.map((item) => item.name)} fixed=${defaults.answers_setting} onUsed=${changed} />`)}
      ${!items.length && !near.length && html`<p class="muted">${t("No Ollama was found on this machine. Start it, or connect a server by its address.")}</p>`}
      ${items.length > 0 && html`<ul class="list">${items.map((item) => html`<${Server} key=${`${item.origin}${item.name}`} item=${item} onDisconnect=${() => setDialog({ disconnect: item })} />`)}</ul>`}
    </section>
    ${choices.items.length > 0 && html`<${Defaults} key=${JSON.stringify(defaults)} defaults=${defaults} choices=${choices} onSaved=${changed} />`}
    ${dialog?.connect && html`<${Connect} names=${items.map((item) => item.name)} fixed=${defaults.answers_setting} onDone=${changed} onClose=${() => setDialog(null)} />`}
    ${dialog?.disconnect && html`<${Confirm} title=${t("Disconnect “{name}”?", { name: dialog.disconnect.name })} confirm=${t("Disconnect")} onClose=${() => setDialog(null)}
      onConfirm=${async () => { await api.disconnectModels({ name: dialog.disconnect.name }); changed(); }}><p>${t("Its models no longer answer, and its key is deleted. The server itself stays as it is.")}</p><//>`}
  `}<//>`;
}

/** An Ollama that answers here: one click uses it. */
function Nearby({ server, names, fixed, onUsed }) {
  const [model, setModel] = useState(server.chat_models[0] ?? "");
  const use = useAction(async () => {
    await api.connectModels({ name: nameOf(server, names), body: { url: server.url, kind: server.kind, ...(model && !fixed ? { default_model: model } : {}) } });
    say(t("Connected. It is used from now on."));
    onUsed();
  });
  return html`<div class="panel">
    <div class="row"><div class="grow stack close"><strong>${t("Found: Ollama")}</strong><span class="muted anywhere">${server.url}</span></div>
      <${Button} kind="primary" busy=${use.busy} onClick=${use.run}>${t("Use this")}<//></div>
    ${server.chat_models.length === 0 && html`<p class="muted">${t("It has no model that writes answers yet. Use it, then pull one.")}</p>`}
    ${server.chat_models.length > 1 && !fixed && html`<${Field} as="select" pick label=${t("Model for answers")} value=${model} onInput=${setModel}>
      ${server.chat_models.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}<//>`}
    ${server.chat_models.length === 1 && html`<p class="muted">${t("Model for answers")}: ${model}</p>`}
    <${Failure} error=${use.error} />
  </div>`;
}

function Server({ item, onDisconnect }) {
  const test = useAction(async () => {
    const { models } = await api.testModelConnection({ name: item.name });
    say(plural(models.length, "It answers, and has one model.", "It answers, and has {n} models."));
  });
  return html`<li class="panel">
    <div class="row">
      <div class="grow stack close"><div class="row"><strong>${item.name}</strong>
        ${item.origin === "settings" && html`<${Badge}>${t("From the settings")}<//>`}${item.has_key && html`<${Badge}>${t("With a key")}<//>`}
        ${!item.is_used && html`<${Badge} tone="warn">${t("Not used")}<//>`}</div>
        <span class="muted anywhere">${item.url}</span></div>
      <${Button} small busy=${test.busy} onClick=${test.run} aria-label=${t("Test {name}", { name: item.name })}>${t("Test")}<//>
      ${item.origin === "saved" && html`<${Button} small kind="quiet" icon="trash" aria-label=${t("Disconnect {name}", { name: item.name })} onClick=${onDisconnect} />`}
    </div>
    ${!item.is_used && html`<p class="muted">${t("The operator’s settings take precedence over this connection.")}</p>`}
    <${Failure} error=${test.error} />
  </li>`;
}

function Defaults({ defaults, choices, onSaved }) {
  const fixed = defaults.answers_setting;
  const [answers, setAnswers] = useState(defaults.answers ?? "");
  const [helpers, setHelpers] = useState(defaults.helpers ?? "");
  const save = useAction(async () => {
    await api.setDefaultModels({ body: { answers: fixed ? null : answers || null, helpers: helpers || null } });
    say(t("Saved"));
    onSaved();
  });
  // A model that its server no longer lists stays chosen until another one is.
  const options = [...new Set([answers, helpers, ...choices.items.map((item) => item.model)].filter(Boolean))];
  const models = options.map((model) => html`<option key=${model} value=${model}>${model}</option>`);
  return html`<section class="stack" aria-labelledby="defaults"><h2 id="defaults">${t("Which model answers")}</h2>
    ${fixed && html`<${Notice}>${t("OLLAMA_LLM_MODEL names the model for answers: {model}. Only the operator can change that.", { model: fixed })}<//>`}
    <${Form} action=${save} submit=${t("Save")}>
      <div class="halves">
        ${!fixed && html`<${Field} as="select" label=${t("For answers")} value=${answers} onInput=${setAnswers} hint=${t("A knowledge base, a pipeline or a question may name another.")}>
          <option value="">${t("Not chosen")}</option>${models}<//>`}
        <${Field} as="select" label=${t("For helper tasks")} value=${helpers} onInput=${setHelpers} hint=${t("Plans, checks, summaries, entities. A small, fast model is enough.")}>
          <option value="">${t("The same as for answers")}</option>${models}<//>
      </div>
    <//></section>`;
}
