/** One document: itself, its passages, and what is known about it. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction, usePolling, useResource } from "../../lib/resource.js";
import { Link, go, query, setQuery } from "../../lib/router.js";
import { owns } from "../../lib/session.js";
import { bytes, dateTime, kindOf, lengthOf, number, pageOf, plural, t } from "../../lib/words.js";
import { Badge, Button, Failure, Head, Loaded, Notice, Skeleton, Tabs } from "../../parts/basics.js";
import { sayError } from "../../parts/layers.js";
import { Difference } from "./difference.js";
import { DocumentFields } from "./fields.js";
import { Reader } from "./reader.js";
import { State, download, readAgain } from "./row.js";
import { DeleteDocument } from "./trash.js";

/** Whether there is a text to read. */
const isReadable = ({ status, chunk_count }) => status === "completed" || (status === "superseded" && chunk_count > 0);

export default function DocumentPage({ base, id }) {
  const found = useResource((signal) => api.document({ kb_id: base, document_id: id, signal }), [base, id]);
  const home = useResource((signal) => api.knowledgeBase({ kb_id: base, signal }), [base]);
  const mine = home.data !== null && owns(home.data);
  const [deleting, setDeleting] = useState(false);
  usePolling(found.reload, 1500, found.data?.status === "processing");
  const tab = query.value.get("tab") ?? "read";
  const here = `/documents/${base}/${id}`;
  const passage = placeOf(query.value);
  return html`<div class="page">
    <${Loaded} of=${found} back=${{ to: `/documents/${base}`, title: t("Documents") }}>${(document) => html`
      <${Head} title=${document.filename} back=${{ to: `/documents/${base}`, title: t("Documents") }}
        about=${[bytes(document.size_bytes), lengthOf(document)].filter(Boolean).join(" · ")}>
        <${Button} icon="download" onClick=${() => download(base, document).catch(sayError)}>${t("Download")}<//>
        ${mine && html`<${Button} icon="trash" aria-label=${t("Delete")} onClick=${() => setDeleting(true)} />`}
      <//>
      <${Failure} error=${home.error} onRetry=${home.reload} />
      ${document.status === "failed" && html`<${Notice} tone="bad" title=${t("This document could not be read")} onRetry=${mine && (() => readAgain(base, document).then(found.set, sayError))}>${document.error}<//>`}
      ${document.status === "processing" && html`<${Notice} title=${t("This document is being read")}><${State} document=${document} />${document.searchable_count > 0 && t("It is found by its words already.")}<//>`}
      ${document.status === "completed" && document.notice && html`<${Notice} tone="warn" title=${t("This document was read in part")}>${document.notice}<//>`}
      ${document.status === "superseded" && html`<${Earlier} base=${base} document=${document} mine=${mine} />`}
      <${Tabs} label=${t("Views of this document")} current=${`${here}?tab=${tab}`} tabs=${[
        { title: t("Read"), to: `${here}?tab=read` },
        { title: t("Passages"), to: `${here}?tab=passages`, count: document.chunk_count },
        (document.version > 1 || document.status === "superseded") && { title: t("Versions"), to: `${here}?tab=versions` },
        { title: t("Details"), to: `${here}?tab=details` },
      ].filter(Boolean)} />
      ${isReadable(document) && tab === "read" && html`<${Reader} base=${base} document=${document} passage=${passage} at=${Number(query.value.get("at")) || null} onTurn=${(page) => setQuery({ at: page })} />`}
      ${tab === "passages" && html`<${Passages} base=${base} id=${id} filename=${document.filename} />`}
      ${tab === "versions" && html`<${Versions} base=${base} id=${id} />`}
      ${tab === "details" && html`<${Details} document=${document} /><${Origin} base=${base} document=${document} mine=${mine} /><${DocumentFields} base=${base} id=${id} mine=${mine} />`}
      ${deleting && html`<${DeleteDocument} base=${base} document=${document} onDeleted=${() => go(`/documents/${base}`)} onRestored=${() => go(`/documents/${base}/${id}`)} onClose=${() => setDeleting(false)} />`}
    `}<//>
  </div>`;
}

/** What an earlier version is, and the way to the present one. */
function Earlier({ base, document, mine }) {
  const all = useResource((signal) => api.versions({ kb_id: base, document_id: document.document_id, query: { limit: 1 }, signal }), [document.document_id]);
  const newest = all.data?.items[0];
  const restore = useAction(() =>
    api.restoreVersion({ kb_id: base, document_id: document.document_id }).then((made) => go(`/documents/${base}/${made.document_id}`), sayError),
  );
  return html`<${Notice} tone="warn" title=${t("This is an earlier version ({n})", { n: number(document.version) })}
    action=${html`${newest && html`<${Button} small to=${`/documents/${base}/${newest.document_id}`}>${t("Open the newest")}<//>`}
      ${mine && html`<${Button} small busy=${restore.busy} onClick=${restore.run}>${t("Restore this version")}<//>`}`}>
    ${t("Replaced {when}. Answers no longer use it.", { when: dateTime(document.superseded_at) })}<//>`;
}

function Versions({ base, id }) {
  const against = query.value.get("against");
  const found = useResource((signal) => api.versions({ kb_id: base, document_id: id, query: { limit: AT_ONCE }, signal }), [base, id]);
  return html`<${Loaded} of=${found}>${({ items }) => html`<ol class="list">${items.map(
    (item) => html`<li class="panel" key=${item.document_id}>
      <div class="row"><${Badge}>${number(item.version)}<//>
        <${Link} class="grow clip" to=${`/documents/${base}/${item.document_id}`} aria-current=${item.document_id === id ? "page" : null}>${item.filename}<//>
        <span class="faint">${bytes(item.size_bytes)} · ${dateTime(item.uploaded_at)}</span>
        ${item.status !== "superseded" && html`<${State} document=${item} />`}
        ${item.document_id !== id && isReadable(item) && html`<${Button} small aria-label=${t("Compare with version {n}", { n: number(item.version) })} aria-pressed=${against === item.document_id} onClick=${() => setQuery({ against: item.document_id })}>${t("Compare")}<//>`}</div>
    </li>`,
  )}</ol>`}<//>
    ${against && html`<${Difference} base=${base} id=${id} against=${against} />`}`;
}

/** The passage that an address marks. */
function placeOf(values) {
  if (!values.get("to")) return null;
  const page = Number(values.get("page")) || null;
  return { char_start: Number(values.get("from")), char_end: Number(values.get("to")), page };
}

const AT_ONCE = 50;

function Passages({ base, id, filename }) {
  const offset = Number(query.value.get("offset")) || 0;
  const found = useResource((signal) => api.passages({ kb_id: base, document_id: id, query: { limit: AT_ONCE, offset }, signal }), [base, id, offset]);
  if (!found.data && !found.error) return html`<${Skeleton} />`;
  return html`<${Loaded} of=${found}>${({ items, total }) => html`
    <p class="muted">${t("What a search finds: the pieces into which the document was split.")}</p>
    <ol class="list">${items.map(
      (item) => html`<li class="panel" key=${item.chunk_id}>
        <div class="row"><${Badge}>${number(item.chunk_index + 1)}<//>${item.page && html`<span class="faint">${pageOf({ page: item.page, filename })}</span>`}
          <span class="faint">${t("characters {from} to {to}", { from: number(item.char_start), to: number(item.char_end) })}</span></div>
        <p class="passage-text">${item.text}</p>
      </li>`,
    )}</ol>
    ${total > AT_ONCE && html`<div class="row center">
      <${Button} icon="back" aria-label=${t("Previous")} disabled=${offset === 0} onClick=${() => setQuery({ offset: Math.max(0, offset - AT_ONCE) || null })} />
      <span class="muted">${t("{from} to {to} of {total}", { from: number(offset + 1), to: number(offset + items.length), total: number(total) })}</span>
      <${Button} icon="next" aria-label=${t("Next")} disabled=${offset + AT_ONCE >= total} onClick=${() => setQuery({ offset: offset + AT_ONCE })} />
    </div>`}`}<//>`;
}

/** Where a document that is kept in step with a source lives. */
function Origin({ base, document, mine }) {
  if (document.kept_by !== "sources" || document.status === "superseded" || document.parent_id) return null;
  return html`<${SourceOf} base=${base} id=${document.document_id} mine=${mine} />`;
}

function SourceOf({ base, id, mine }) {
  const found = useResource((signal) => api.origin({ kb_id: base, document_id: id, signal }), [base, id]);
  return html`<h2>${t("Where it lives")}</h2><${Loaded} of=${found} lines=${2}>${(origin) => {
    const facts = [
      [t("Source"), mine ? html`<${Link} to=${`/documents/${base}/sources/${origin.source_id}`}>${origin.source}<//>` : origin.source],
      [t("Path"), origin.path],
      isAddress(origin.link) && [t("Original"), html`<a href=${origin.link} target="_blank" rel="noreferrer noopener">${origin.link}</a>`],
      origin.version && [t("Version there"), html`<code>${origin.version}</code>`],
      origin.modified_at && [t("Changed there"), dateTime(origin.modified_at)],
      ...Object.entries(origin.details),
    ].filter(Boolean);
    return html`<dl class="facts">${facts.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
  }}<//><${Readers} base=${base} id=${id} />`;
}

/** Who may read it here, and why; only for whoever may change the knowledge base. */
function Readers({ base, id }) {
  const found = useResource((signal) => api.documentReaders({ kb_id: base, document_id: id, signal }), [base, id]);
  if (!found.data) return null;
  const { everybody, readers, source } = found.data;
  return html`<h2>${t("Who may read it")}</h2>
    <p>${everybody ? t("Everybody who sees the knowledge base.") : t("Of those who see the knowledge base, whoever may read it at “{source}”:", { source })}</p>
    <ul class="list">${readers.map((one) => html`<li key=${`${one.kind}-${one.name}`}>${one.name} <span class="faint">${t(KINDS[one.kind])} · ${one.account_ids ? plural(one.account_ids.length, "One account here", "{n} accounts here") : t("Whoever is in its group of the sign-in")}</span></li>`)}</ul>`;
}

const KINDS = { person: "Person", group: "Group" };
const isAddress = (link) => /^https?:/.test(link ?? "");

function Details({ document }) {
  const facts = [
    [t("Type"), kindOf(document.content_type)],
    document.path && [t("Path"), document.path],
    [t("Version"), number(document.version)],
    [t("Size"), bytes(document.size_bytes)],
    [t("Passages"), number(document.chunk_count)],
    [t("Uploaded"), dateTime(document.uploaded_at)],
    document.completed_at && [t("Read at"), dateTime(document.completed_at)],
    ["SHA-256", html`<code>${document.sha256}</code>`],
    [t("Id"), html`<code>${document.document_id}</code>`],
  ].filter(Boolean);
  return html`<dl class="facts">${facts.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}
