/** One model: trying it, its use and its limits. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction, useResource } from "../../lib/resource.js";
import { isAdmin } from "../../lib/session.js";
import { number, t } from "../../lib/words.js";
import { Button, Loaded } from "../../parts/basics.js";
import { Field, Form } from "../../parts/forms.js";
import { Confirm, Dialog, say } from "../../parts/layers.js";

export function Model({ model, onChanged, onClose }) {
  const [deleting, setDeleting] = useState(false);
  const place = { model_id: model.id };
  if (deleting) {
    return html`<${Confirm} title=${t("Delete “{name}”?", { name: model.name })} confirm=${t("Delete")} onClose=${onClose}
      onConfirm=${async () => { await api.deleteModel(place); onChanged(); }}><p>${t("The model is removed from its server. It can be pulled again.")}</p><//>`;
  }
  return html`<${Dialog} title=${model.name} onClose=${onClose} wide>
    <${Try} place=${place} />
    ${isAdmin.value && html`<${Use} place=${place} /><${Limits} place=${place} />
      <div class="form-actions"><${Button} kind="danger" onClick=${() => setDeleting(true)}>${t("Delete")}<//></div>`}
  <//>`;
}

function Try({ place }) {
  const [prompt, setPrompt] = useState("");
  const [answer, setAnswer] = useState("");
  const action = useAction(async () => setAnswer((await api.testModel({ ...place, body: prompt ? { prompt } : {} })).response));
  return html`<${Form} action=${action} submit=${t("Try it")} submitKind="plain">
    <${Field} as="textarea" label=${t("Prompt")} value=${prompt} onInput=${setPrompt} optional />
    ${answer && html`<p class="passage-text" role="status">${answer}</p>`}
  <//>`;
}

function Use({ place }) {
  const found = useResource((signal) => api.modelUse({ ...place, query: { days: 30 }, signal }), [place.model_id]);
  return html`<${Loaded} of=${found} lines=${2}>${(use) => html`<div class="figures">
    ${[[t("Calls in 30 days"), use.calls], [t("Failed"), use.errors], [t("Tokens"), use.tokens]].map(([name, count]) => html`<div class="figure" key=${name}><strong>${number(count)}</strong><span>${name}</span></div>`)}</div>`}<//>`;
}

function Limits({ place }) {
  const found = useResource((signal) => api.modelLimits({ ...place, signal }), [place.model_id]);
  return html`<${Loaded} of=${found}>${(limits) => html`<${LimitsForm} place=${place} limits=${limits} onSaved=${found.set} />`}<//>`;
}

const listOf = (text) => text.split(",").map((one) => one.trim()).filter(Boolean);

function LimitsForm({ place, limits, onSaved }) {
  const [values, setValues] = useState({ rate: limits.rate_limit ?? "", tokens: limits.max_tokens ?? "", users: limits.allowed_users.join(", "), roles: limits.allowed_roles.join(", ") });
  const set = (name) => (value) => setValues({ ...values, [name]: value });
  const action = useAction(async () => {
    const body = { rate_limit: Number(values.rate) || null, max_tokens: Number(values.tokens) || null, allowed_users: listOf(values.users), allowed_roles: listOf(values.roles) };
    onSaved(await api.limitModel({ ...place, body }));
    say(t("Saved"));
  });
  return html`<section class="stack"><h3>${t("Limits")}</h3>
    <${Form} action=${action} submit=${t("Save")}>
      <div class="halves">
        <${Field} label=${t("Calls per minute")} type="number" min="1" value=${values.rate} onInput=${set("rate")} optional />
        <${Field} label=${t("Tokens per answer")} type="number" min="1" value=${values.tokens} onInput=${set("tokens")} optional />
        <${Field} label=${t("Only these users")} value=${values.users} onInput=${set("users")} hint=${t("Usernames, separated by commas.")} optional />
        <${Field} label=${t("Only these roles")} value=${values.roles} onInput=${set("roles")} hint=${t("For example: admin")} optional />
      </div>
    <//></section>`;
}
