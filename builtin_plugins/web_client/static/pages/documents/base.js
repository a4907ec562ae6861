/** A knowledge base: its documents, current uploads, and who sees it. */

import { html, useMemo, useState } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { Link, go, query, setQuery } from "../../lib/router.js";
import { owns } from "../../lib/session.js";
import { number, plural, t } from "../../lib/words.js";
import { Button, Empty, Failure, Head, Notice, Skeleton, Spinner, Unshown } from "../../parts/basics.js";
import { BaseFigures } from "../../parts/base-figures.js";
import { Dialog, Menu } from "../../parts/layers.js";
import { LongList } from "../../parts/long-list.js";
import { NearLimit } from "../account/usage.js";
import { alike, named } from "./alike.js";
import { DeleteBase, EditBase, ShareBase } from "./base-dialogs.js";
import { BaseFields } from "./base-fields.js";
import { DropZone } from "./drop-zone.js";
import { ExportBase, Unmade } from "./exchange.js";
import { useDocuments } from "./live.js";
import { Selection, useSelection } from "./many.js";
import { Choices, Facets, filterOf } from "./narrow.js";
import { ROW, Row } from "./row.js";
import { LookAs } from "./sight.js";
import { Reembed, Trees, Upkeep, useUpkeep } from "./upkeep.js";
import { Trash } from "./trash.js";
import { addFiles, removeUpload, retryUpload, settleUpload, uploads } from "./uploads.js";
import { VisibilityBadge } from "./visibility.js";

const STATES = { "": "All", processing: "Being read", failed: "Failed" };

export default function Base({ base: id }) {
  const base = useResource((signal) => api.knowledgeBase({ kb_id: id, signal }), [id]);
  const live = useDocuments(id);
  const upkeep = useUpkeep(id, () => {
    base.reload();
    live.reload();
  });
  const [dialog, setDialog] = useState("");
  if (upkeep.lost) return html`<div class="page"><${Unmade} job=${upkeep.lost} /></div>`;
  if (!base.data) return html`<div class="page">${base.error ? html`<${Unshown} error=${base.error} onRetry=${base.reload} back=${{ to: "/documents", title: t("Documents") }} />` : html`<${Skeleton} />`}</div>`;
  const mine = owns(base.data);
  return html`<div class="page">
    <${Head} title=${base.data.name} about=${base.data.description} back=${{ to: "/documents", title: t("Documents") }}>
      <${Button} kind="primary" icon="ask" to=${`/?base=${id}`}>${t("Ask")}<//>
      ${mine && html`<${Button} icon="people" onClick=${() => setDialog("share")}>${t("Share")}<//>`}
      ${mine && html`<${Menu} label=${t("More")} kind="plain" small=${false} items=${[
        { title: t("Rename or describe"), icon: "edit", onSelect: () => setDialog("edit") },
        { title: base.data.graph ? t("Show the graph") : t("Build the graph"), icon: "graph", onSelect: () => go(`/graph?base=${id}`) },
        { title: t("Sources"), icon: "globe", onSelect: () => go(`/documents/${id}/sources`) },
        { title: t("Evaluate"), icon: "evaluation", onSelect: () => go(`/evaluation?base=${id}`) },
        { title: t("Figures"), icon: "operations", onSelect: () => setDialog("figures") },
        { title: t("Fields of documents"), icon: "edit", onSelect: () => setDialog("fields") },
        { title: t("View as another member"), icon: "search", onSelect: () => setDialog("look") },
        { title: t("Build trees"), icon: "pipelines", onSelect: () => setDialog("trees") },
        { title: t("Change the embedding model"), icon: "retry", onSelect: () => setDialog("model") },
        { title: t("Export"), icon: "download", onSelect: () => setDialog("export") },
        { title: t("Trash"), icon: "trash", onSelect: () => setDialog("trash") },
        { title: t("Delete"), icon: "trash", danger: true, onSelect: () => setDialog("delete") },
      ]} />`}
    <//>
    <div class="row"><${VisibilityBadge} of=${base.data} />
      <span class="muted">${live.documents && plural(live.count, "One document", "{n} documents")}</span>
      ${live.count > 1 && html`<${Link} class="faint" to=${`/documents/${id}/contradictions`}>${t("Contradictions")}<//>`}</div>
    <${Upkeep} upkeep=${upkeep} />
    ${mine && html`<${NearLimit} organization=${base.data.organization_id} />`}
    ${mine && html`<${DropZone} onFiles=${(files) => addFiles(id, files)} />`}
    <${OnTheWay} base=${id} />
    <${Failure} error=${live.error} onRetry=${live.reload} />
    ${!live.documents && !live.error && html`<${Skeleton} lines=${6} />`}
    ${live.documents && html`<${Documents} base=${id} live=${live} mine=${mine} />`}
    ${dialog === "edit" && html`<${EditBase} base=${base.data} onSaved=${base.set} onClose=${() => setDialog("")} />`}
    ${dialog === "share" && html`<${ShareBase} base=${base.data} onSaved=${base.set} onClose=${() => setDialog("")} />`}
    ${dialog === "fields" && html`<${BaseFields} base=${base.data} onClose=${() => setDialog("")} />`}
    ${dialog === "look" && html`<${LookAs} base=${base.data} onClose=${() => setDialog("")} />`}
    ${dialog === "model" && html`<${Reembed} base=${base.data} onBegun=${upkeep.reload} onClose=${() => setDialog("")} />`}
    ${dialog === "trees" && html`<${Trees} base=${base.data} onBegun=${upkeep.reload} onClose=${() => setDialog("")} />`}
    ${dialog === "export" && html`<${ExportBase} base=${base.data} onClose=${() => setDialog("")} />`}
    ${dialog === "figures" && html`<${Dialog} title=${t("“{name}” in the last 30 days", { name: base.data.name })} onClose=${() => setDialog("")} wide><${BaseFigures} base=${id} /><//>`}
    ${dialog === "trash" && html`<${Trash} base=${id} onRestored=${(found) => live.put([found])} onClose=${() => setDialog("")} />`}
    ${dialog === "delete" && html`<${DeleteBase} base=${base.data} count=${live.count} onDeleted=${() => go("/documents")} onClose=${() => setDialog("")} />`}
  </div>`;
}

const idOf = (document) => document.document_id;

function countsOf(documents) {
  const counts = {};
  for (const { status } of documents) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

function Documents({ base, live, mine }) {
  const text = query.value.get("q") ?? "";
  const state = query.value.get("state") ?? "";
  const [choices, setChoices] = useState([]);
  const [isOpen, setOpen] = useState(false);
  const filter = choices.length ? JSON.stringify(filterOf(choices)) : "";
  const matching = useResource((signal) => (filter ? everything(api.documents, { kb_id: base, query: { filter }, signal }).then((found) => new Set(found.map(idOf))) : Promise.resolve(null)), [base, filter]);
  const shown = useMemo(() => {
    const wanted = text.toLowerCase();
    const among = filter ? (matching.data ?? new Set()) : null;
    if (!wanted && !state && !among) return live.documents;
    return live.documents.filter((item) => (!state || item.status === state) && (!among || among.has(item.document_id)) && item.filename.toLowerCase().includes(wanted));
  }, [live.documents, text, state, filter, matching.data]);
  const counts = useMemo(() => countsOf(live.documents), [live.documents]);
  const selection = useSelection(shown);
  const row = (item) => html`<${Row} base=${base} document=${item} job=${live.jobs.get(item.document_id)} put=${live.put} drop=${live.drop} mine=${mine}
    chosen=${selection.ids.has(item.document_id)} choose=${selection.choose} />`;
  if (!live.documents.length) {
    return html`<${Empty} icon="documents" title=${t("Nothing in here yet")}>${t("Add files above. You can ask as soon as the first one has been read.")}<//>`;
  }
  return html`<section class="stack" aria-label=${t("Documents")}>
    <div class="filters">
      <input class="input search" type="search" placeholder=${t("Find a document")} aria-label=${t("Find a document")} value=${text} onInput=${(event) => setQuery({ q: event.target.value })} />
      ${Object.entries(STATES).map(
        ([value, title]) => html`<${Button} small key=${value} aria-pressed=${state === value} class=${state === value ? "pressed" : ""} onClick=${() => setQuery({ state: value })}>
          ${t(title)}${value && ` ${number(counts[value] ?? 0)}`}
        <//>`,
      )}
      <${Button} small icon="search" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>${t("Filter")}<//>
    </div>
    ${isOpen && html`<${Facets} bases=${[base]} choices=${choices} onChange=${setChoices} />`}
    <${Choices} choices=${choices} onChange=${setChoices} />
    <${Failure} error=${matching.error} onRetry=${matching.reload} />
    ${live.missing > 0 && html`<p class="row muted">${!live.error && html`<${Spinner} />`}
      ${t("So far, {n} of {total} documents are loaded; numbers and search cover only these.", { n: number(live.documents.length), total: number(live.count) })}</p>`}
    ${shown.length === 0 && html`<p class="muted">${live.missing > 0 ? t("No document matches so far.") : t("No document matches.")}</p>`}
    ${mine && html`<${Selection} base=${base} selection=${selection} shown=${shown} live=${live} />`}
    <div class="table-box unclipped"><${LongList} label=${t("Documents")} items=${shown} keyOf=${idOf} rowHeight=${ROW} row=${row} /></div>
  </section>`;
}

/** Files that the server doesn't have yet, or has refused. */
function OnTheWay({ base }) {
  const items = uploads.value.filter((item) => item.base === base);
  if (!items.length) return null;
  const refused = items.filter((item) => item.state === "refused");
  const known = items.filter((item) => item.state === "known");
  const taken = items.filter((item) => item.state === "taken");
  const waiting = items.length - refused.length - known.length - taken.length;
  return html`<section class="stack close" aria-label=${t("Uploads")} aria-live="polite">
    ${waiting > 0 && html`<p class="row"><span class="spinner" aria-hidden="true"></span>${plural(waiting, "Sending one file …", "Sending {n} files …")}</p>`}
    ${known.length > 0 && html`<${Known} items=${known} />`}
    ${taken.length > 0 && html`<${Taken} items=${taken} />`}
    ${alike(refused).map((group) => html`<${Refused} key=${group[0].id} items=${group} />`)}
  </section>`;
}

function Refused({ items }) {
  const again = items.filter((item) => !item.final);
  const names = named(items.map((item) => item.name));
  const dismiss = () => items.forEach((item) => removeUpload(item.id));
  return html`<div class="notice notice-bad" role="alert">
    <div class="notice-text"><strong>${items.length > 1 ? t("{n} files were not added", { n: number(items.length) }) : names}</strong>
      <span>${items[0].error.message}</span>${items[0].error.said && html`<span lang="en">${items[0].error.said}</span>`}${items.length > 1 && html`<span class="faint">${names}</span>`}</div>
    ${again.length > 0 && html`<${Button} small icon="retry" onClick=${() => again.forEach((item) => retryUpload(item.id))}>${t("Try again")}<//>`}
    <${Button} small kind="quiet" icon="close" aria-label=${t("Dismiss")} onClick=${dismiss} />
  </div>`;
}

/** Files of other content whose names documents have already: people say what is meant. */
function Taken({ items }) {
  const settle = (some, what) => some.forEach((item) => settleUpload(item.id, what));
  const replaceable = items.filter((item) => item.replaceable);
  return html`<${Notice} tone="warn" title=${plural(items.length, "A document with this name is already here", "Documents with {n} of these names are already here")}
    action=${html`${replaceable.length === items.length && html`<${Button} small onClick=${() => settle(items, "replace")}>${t("Replace")}<//>`}
      <${Button} small onClick=${() => settle(items, "keep")}>${t("Keep both")}<//>
      <${Button} small kind="quiet" icon="close" aria-label=${t("Dismiss")} onClick=${() => items.forEach((item) => removeUpload(item.id))} />`}>
    ${named(items.map((item) => item.name))}. ${t("The one that is replaced is no longer used for answers, but can still be opened as an earlier version.")}<//>`;
}

/** Files identical to an existing document: nothing was added. */
function Known({ items }) {
  const names = items.map(({ name, document }) => (name === document.filename ? name : t("{name} (as {other})", { name, other: document.filename })));
  return html`<${Notice} title=${plural(items.length, "One file is here already", "{n} files are here already")}
    action=${html`<${Button} small kind="quiet" icon="close" aria-label=${t("Dismiss")} onClick=${() => items.forEach((item) => removeUpload(item.id))} />`}>
    ${named(names)}<//>`;
}
