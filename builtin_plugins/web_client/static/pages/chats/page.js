/** Published chats: a pipeline that visitors of other sites may ask. */

import { html, useState } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { apiAddress } from "../../lib/place.js";
import { useAction, useResource } from "../../lib/resource.js";
import { Link, go, query, setQuery } from "../../lib/router.js";
import { owns, ownFirst } from "../../lib/session.js";
import { number, t } from "../../lib/words.js";
import { Badge, Button, Copyable, Empty, Head, Loaded } from "../../parts/basics.js";
import { Field, Form } from "../../parts/forms.js";
import { Confirm, Dialog, Menu, sayError } from "../../parts/layers.js";
import { QuestionDays } from "../../parts/question-days.js";
import { sitesOf } from "./sites.js";

const STATES = {
  open: { title: "Open for visitors", tone: "good" },
  disabled: { title: "Off", tone: "neutral" },
  owner_inactive: { title: "Its owner’s account is deactivated", tone: "bad" },
  pipeline_gone: { title: "Its pipeline was deleted", tone: "bad" },
  no_knowledge_base: { title: "Its pipeline has no knowledge base", tone: "bad" },
  publishing_not_allowed: { title: "Its pipeline answers from knowledge bases that others don’t let you publish", tone: "bad" },
  method_gone: { title: "Its method of answering is no longer available", tone: "bad" },
};

/** The chats, and the pipelines that the caller may publish. */
async function load(signal) {
  const [chats, pipelines] = await Promise.all([everything(api.chats, { signal }), everything(api.pipelines, { signal })]);
  return { chats, pipelines: ownFirst(pipelines.filter(owns)) };
}

export default function Chats() {
  const found = useResource(load);
  const [dialog, setDialog] = useState(null);
  const close = () => setDialog(null);
  const create = () => setQuery({ new: 1 });
  const add = html`<${Button} kind="primary" icon="plus" onClick=${create}>${t("New chat")}<//>`;
  return html`<div class="page">
    <${Head} title=${t("Published chats")} about=${t("Let visitors of a website ask a pipeline, without accounts and within limits.")}>${add}<//>
    <${Loaded} of=${found}>${({ chats, pipelines }) => html`
      ${chats.length ? html`<div class="cards">${chats.map((chat) => html`<${Tile} key=${chat.id} chat=${chat} onDialog=${setDialog} onChanged=${found.reload} />`)}</div>` : html`<${Empty} icon="share" title=${t("No published chats")} action=${add}>${t("Choose a pipeline and the sites that may show it. You get a line to put into their pages.")}<//>`}
      ${query.value.get("new") === "1" && html`<${pipelines.length ? Create : PipelineFirst} pipelines=${pipelines} onMade=${found.reload} onClose=${() => setQuery({ new: null })} />`}
      ${dialog?.kind === "embed" && html`<${Embed} chat=${dialog.chat} onClose=${close} />`}
      ${dialog?.kind === "figures" && html`<${Figures} chat=${dialog.chat} onClose=${close} />`}
      ${dialog?.kind === "delete" && html`<${Confirm} title=${t("Delete “{name}”?", { name: dialog.chat.name })} confirm=${t("Delete")} onClose=${close}
        onConfirm=${async () => { await api.deleteChat({ endpoint_id: dialog.chat.id }); found.reload(); }}><p>${t("Visitors can’t ask any more. What they asked is removed.")}</p><//>`}
    `}<//>
  </div>`;
}

function Tile({ chat, onDialog, onChanged }) {
  const { title, tone } = STATES[chat.state];
  const turn = () => api.changeChat({ endpoint_id: chat.id, body: { enabled: !chat.enabled } }).then(onChanged, sayError);
  return html`<article class="tile">
    <div class="row tight"><h2 class="grow"><${Link} to=${`/chats/${chat.id}`}>${chat.name}<//></h2>
      <${Menu} label=${t("More on {name}", { name: chat.name })} items=${[
        { title: t("Visitors and appearance"), icon: "people", onSelect: () => go(`/chats/${chat.id}`) },
        { title: t("Figures"), icon: "operations", onSelect: () => onDialog({ kind: "figures", chat }) },
        { title: chat.enabled ? t("Turn off") : t("Turn on"), icon: "lock", onSelect: turn },
        { title: t("Delete"), icon: "trash", danger: true, onSelect: () => onDialog({ kind: "delete", chat }) },
      ]} /></div>
    <p>${sitesOf(chat)}</p>
    <div class="tile-foot"><${Badge} tone=${tone}>${t(title)}<//><code>${chat.slug}</code><span class="grow"></span>
      <${Button} small icon="copy" onClick=${() => onDialog({ kind: "embed", chat })}>${t("Embed")}<//></div>
  </article>`;
}

const PipelineFirst = ({ onClose }) => html`<${Dialog} title=${t("New chat")} onClose=${onClose}>
  <p>${t("A chat answers from one of your pipelines, and you have none yet. Make one first.")}</p>
  <div class="form-actions"><${Button} onClick=${onClose}>${t("Cancel")}<//><${Button} kind="primary" icon="plus" to="/pipelines?new=1">${t("New pipeline")}<//></div>
<//>`;

function Create({ pipelines, onMade, onClose }) {
  const [name, setName] = useState("");
  const [slug, setSlug] = useState("");
  const [pipeline, setPipeline] = useState(pipelines[0].id);
  const [origins, setOrigins] = useState("");
  const [greeting, setGreeting] = useState("");
  const action = useAction(async () => {
    const body = { name, slug, pipeline_id: pipeline, allowed_origins: origins.trim() || null, rag_config: greeting ? { greeting } : {} };
    await api.createChat({ body });
    onMade();
    onClose();
  });
  const wrong = action.error?.fields ?? {};
  return html`<${Dialog} title=${t("New chat")} onClose=${onClose}>
    <${Form} action=${action} submit=${t("Publish")} onCancel=${onClose} disabled=${!name.trim() || !slug.trim()}>
      <${Field} label=${t("Name")} value=${name} onInput=${setName} hint=${t("Visitors see it.")} error=${wrong.name} required autofocus />
      <${Field} label=${t("Address")} value=${slug} onInput=${setSlug} hint=${t("Letters, digits, and _ . -")} error=${wrong.slug} required />
      <${Field} as="select" label=${t("Pipeline")} value=${pipeline} onInput=${setPipeline} error=${wrong.pipeline_id}>${pipelines.map((item) => html`<option key=${item.id} value=${item.id}>${item.name}</option>`)}<//>
      <${Field} label=${t("Sites that may show it")} value=${origins} onInput=${setOrigins} placeholder="https://www.example.org" hint=${t("Origins, separated by commas.")} error=${wrong.allowed_origins} optional />
      <${Field} label=${t("Greeting")} value=${greeting} onInput=${setGreeting} error=${wrong.greeting} optional />
    <//>
  <//>`;
}

const Embed = ({ chat, onClose }) => html`<${Dialog} title=${chat.name} onClose=${onClose}>
  <p class="muted">${t("Add this line to the pages of the site:")}</p>
  <${Copyable} text=${`<script src="${apiAddress(chat.widget)}" async></script>`} label=${t("Embed")} />
<//>`;

function Figures({ chat, onClose }) {
  const found = useResource((signal) => api.chatFigures({ endpoint_id: chat.id, query: { days: 30 }, signal }), [chat.id]);
  return html`<${Dialog} title=${t("“{name}” in the last 30 days", { name: chat.name })} onClose=${onClose} wide>
    <${Loaded} of=${found}>${(all) => html`<div class="figures">
      ${[[t("Questions"), all.questions], [t("Answered"), all.answered], [t("Not in the documents"), all.refused], [t("Failed"), all.failed], [t("Liked"), all.up], [t("Disliked"), all.down]].map(
        ([name, count]) => html`<div class="figure" key=${name}><strong>${number(count)}</strong><span>${name}</span></div>`,
      )}</div>${all.items.length > 0 && html`<${QuestionDays} days=${all.items} />`}`}<//>
  <//>`;
}
