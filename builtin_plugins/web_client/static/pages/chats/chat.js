/** One published chat: what visitors asked and thought of the answers, how it looks, and who may show it. */

import { html, useState } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { query, setQuery } from "../../lib/router.js";
import { ago, number, plural, t } from "../../lib/words.js";
import { Badge, Button, Empty, Head, Loaded, Tabs } from "../../parts/basics.js";
import { Icon } from "../../parts/icons.js";
import { Confirm } from "../../parts/layers.js";
import { Looks } from "./looks.js";
import { sitesOf } from "./sites.js";

const AT_ONCE = 30;
const TABS = { "": "Visitors", feedback: "Feedback", looks: "Appearance" };

async function load(id, signal) {
  const chat = (await everything(api.chats, { signal })).find((one) => one.id === id);
  if (!chat) throw Object.assign(new Error(t("There is no such chat, or it isn’t yours.")), { status: 404 });
  return chat;
}

export default function Chat({ id }) {
  const found = useResource((signal) => load(id, signal), [id]);
  const tab = query.value.get("tab") ?? "";
  const address = (name) => `/chats/${id}${name ? `?tab=${name}` : ""}`;
  return html`<div class="page">
    <${Loaded} of=${found} back=${{ to: "/chats", title: t("Published chats") }}>${(chat) => html`
      <${Head} title=${chat.name} about=${sitesOf(chat)} back=${{ to: "/chats", title: t("Published chats") }} />
      <${Tabs} label=${t("Views of this chat")} current=${address(tab)} tabs=${Object.entries(TABS).map(([name, title]) => ({ title: t(title), to: address(name) }))} />
      ${tab === "" && html`<${Sessions} id=${id} />`}
      ${tab === "feedback" && html`<${Feedback} id=${id} />`}
      ${tab === "looks" && html`<${Looks} chat=${chat} onSaved=${found.reload} />`}
    `}<//>
  </div>`;
}

const Thumb = ({ rating }) => rating && html`<span role="img" aria-label=${rating === "up" ? t("Liked") : t("Disliked")} class=${rating === "up" ? "good" : "bad"}><${Icon} name=${rating === "up" ? "up_thumb" : "down_thumb"} size=${16} /></span>`;

function Sessions({ id }) {
  const offset = Number(query.value.get("offset")) || 0;
  const [open, setOpen] = useState("");
  const [deleting, setDeleting] = useState(null);
  const found = useResource((signal) => api.chatSessions({ endpoint_id: id, query: { limit: AT_ONCE, offset }, signal }), [id, offset]);
  return html`<${Loaded} of=${found}>${({ items, total }) => html`
    ${!items.length && html`<${Empty} icon="share" title=${t("Nobody has asked yet")}>${t("What visitors ask, and what they think of the answers, shows up here.")}<//>`}
    <ul class="list">${items.map((one) => html`<li class="panel" key=${one.session_id}>
      <div class="row"><button type="button" class="button button-link grow" aria-expanded=${open === one.session_id} onClick=${() => setOpen(open === one.session_id ? "" : one.session_id)}>${plural(one.turns, "One question", "{n} questions")}, ${ago(one.last_activity)}</button>
        <span class="faint clip">${one.origin}</span>
        ${one.refused > 0 && html`<${Badge} tone="warn">${plural(one.refused, "one not in the documents", "{n} not in the documents")}<//>`}
        ${one.up > 0 && html`<span class="row"><${Thumb} rating="up" />${number(one.up)}</span>`}${one.down > 0 && html`<span class="row"><${Thumb} rating="down" />${number(one.down)}</span>`}
        <${Button} kind="quiet" small icon="trash" aria-label=${t("Delete")} onClick=${() => setDeleting(one)} /></div>
      ${open === one.session_id && html`<${Turns} id=${id} session=${one.session_id} />`}
    </li>`)}</ul>
    ${total > AT_ONCE && html`<div class="row center"><${Button} disabled=${!offset} onClick=${() => setQuery({ offset: Math.max(0, offset - AT_ONCE) || null })}>${t("Previous")}<//><${Button} disabled=${offset + AT_ONCE >= total} onClick=${() => setQuery({ offset: offset + AT_ONCE })}>${t("Next")}<//></div>`}
    ${deleting && html`<${Confirm} title=${t("Delete what this visitor asked?")} confirm=${t("Delete")} onClose=${() => setDeleting(null)}
      onConfirm=${async () => { await api.deleteChatSession({ endpoint_id: id, session_id: deleting.session_id }); found.reload(); }}><p>${t("The questions, answers and ratings of this visit are removed for good.")}</p><//>`}
  `}<//>`;
}

function Turns({ id, session }) {
  const found = useResource((signal) => api.chatSessionTurns({ endpoint_id: id, session_id: session, query: { limit: 200 }, signal }), [id, session]);
  return html`<${Loaded} of=${found}>${({ items }) => html`<div class="stack">${items.map((turn) => html`<article class="stack close" key=${turn.turn_id}>
    <p class="row"><strong class="grow">${turn.question}</strong><${Thumb} rating=${turn.rating} /></p>
    <p class="passage-text">${turn.withheld ? t("Parts of this answer come from documents that were deleted or that you can’t see.") : turn.answer}</p>
    ${turn.comment && html`<p class="muted">“${turn.comment}”</p>`}
  </article>`)}</div>`}<//>`;
}

function Feedback({ id }) {
  const rating = query.value.get("rating") ?? "";
  const found = useResource((signal) => api.chatFeedback({ endpoint_id: id, query: { limit: 200, rating }, signal }), [id, rating]);
  const views = { "": t("All"), up: t("Liked"), down: t("Disliked") };
  return html`<div class="filters">${Object.entries(views).map(([value, title]) => html`<${Button} small key=${value} aria-pressed=${rating === value} class=${rating === value ? "pressed" : ""} onClick=${() => setQuery({ rating: value || null })}>${title}<//>`)}</div>
    <${Loaded} of=${found}>${({ items }) =>
      items.length
        ? html`<ul class="list">${items.map((one) => html`<li class="panel" key=${one.turn_id}><div class="row"><${Thumb} rating=${one.rating} /><span class="grow">${one.comment || html`<span class="muted">${t("No comment")}</span>`}</span><span class="faint">${ago(one.rated_at)}</span></div></li>`)}</ul>`
        : html`<${Empty} icon="share" title=${t("No feedback yet")}>${t("Visitors can rate each answer and leave a comment.")}<//>`
    }<//>`;
}
