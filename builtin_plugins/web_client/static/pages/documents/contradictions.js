/** What the documents of a knowledge base say differently about the same thing. */

import { html } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction, useResource } from "../../lib/resource.js";
import { Link, query, setQuery } from "../../lib/router.js";
import { owns } from "../../lib/session.js";
import { dateTime, day, number, pageOf, plural, t } from "../../lib/words.js";
import { Badge, Button, Empty, Failure, Head, Loaded, Notice } from "../../parts/basics.js";
import { apart } from "./difference.js";
import { Upkeep, useUpkeep } from "./upkeep.js";

const AT_ONCE = 50;
const CALLS = 100;

export default function Contradictions({ base: id }) {
  const offset = Number(query.value.get("offset")) || 0;
  const base = useResource((signal) => api.knowledgeBase({ kb_id: id, signal }), [id]);
  const found = useResource((signal) => api.contradictions({ kb_id: id, query: { limit: AT_ONCE, offset }, signal }), [id, offset]);
  const upkeep = useUpkeep(id, found.reload);
  const compare = useAction((calls) => api.findContradictions({ kb_id: id, body: { model_calls: calls } }).then(upkeep.reload));
  const mine = base.data !== null && owns(base.data);
  return html`<div class="page">
    <${Head} title=${t("Contradictions")} about=${base.data?.name} back=${{ to: `/documents/${id}`, title: t("Documents") }}>
      ${mine && html`<${Button} kind="primary" busy=${compare.busy || upkeep.going.length > 0} onClick=${() => compare.run(0)}>${t("Compare the documents")}<//>`}
    <//>
    <p class="muted">${t("Sentences of documents about the same thing that differ only in a number, a date or a “not”. You see what you may read.")}</p>
    ${mine && found.data?.has_model && html`<div class="row"><p class="muted">${t("The model can look for contradictions in other words, with up to {n} calls. It may be wrong.", { n: number(CALLS) })}</p>
      <${Button} small disabled=${compare.busy || upkeep.going.length > 0} onClick=${() => compare.run(CALLS)}>${t("Ask the model, too")}<//></div>`}
    <${Failure} error=${compare.error ?? base.error} />
    <${Upkeep} upkeep=${upkeep} />
    <${Loaded} of=${found}>${(report) => html`<${Report} base=${id} report=${report} offset=${offset} />`}<//>
  </div>`;
}

function Report({ base, report, offset }) {
  const { made_at: made, items, total } = report;
  if (!made) return html`<${Empty} icon="documents" title=${t("Not compared yet")}>${t("Whoever owns the knowledge base can have its documents compared. No model is needed.")}<//>`;
  if (!total && report.is_complete) return html`<${Empty} icon="documents" title=${t("No contradictions")}>${t("Compared {when}.", { when: dateTime(made) })}<//>`;
  return html`<p class="faint">${plural(total, "One contradiction", "{n} contradictions")} · ${t("compared {when}", { when: dateTime(made) })}</p>
    ${!report.is_complete && html`<${Notice} tone="warn">${t("There was too much to compare all of it.")}<//>`}
    <ol class="list">${items.map((item) => html`<li class="panel" key=${`${item.newer.chunk_id}-${item.newer.char_start}-${item.older.chunk_id}`}><${Pair} base=${base} item=${item} /></li>`)}</ol>
    ${total > AT_ONCE && html`<div class="row center">
      <${Button} icon="back" aria-label=${t("Previous")} disabled=${offset === 0} onClick=${() => setQuery({ offset: Math.max(0, offset - AT_ONCE) || null })} />
      <span class="muted">${t("{from} to {to} of {total}", { from: number(offset + 1), to: number(offset + items.length), total: number(total) })}</span>
      <${Button} icon="next" aria-label=${t("Next")} disabled=${offset + AT_ONCE >= total} onClick=${() => setQuery({ offset: offset + AT_ONCE })} />
    </div>`}`;
}

function Pair({ base, item }) {
  const byModel = item.found_by === "model";
  const [older, newer] = byModel ? [item.older.text, item.newer.text] : apart(item.older.text, item.newer.text);
  return html`${byModel && html`<p><${Badge}>${t("Found by the model")}<//></p>`}
    <div class="change"><${Side} base=${base} of=${item.older}>${older}<//><${Side} base=${base} of=${item.newer}>${newer}<//></div>`;
}

function Side({ base, of, children }) {
  const place = new URLSearchParams({ from: of.char_start, to: of.char_end, ...(of.page ? { page: of.page } : {}) });
  const dated = (name, date) => date && `${name} ${day(`${date.slice(0, 10)}T00:00:00`)}`;
  const dates = [dated(t("Valid from"), of.valid_from), dated(t("Valid until"), of.valid_until), of.page && pageOf({ page: of.page, filename: of.filename })];
  return html`<div><${Link} to=${`/documents/${base}/${of.document_id}?${place}`}>${of.filename}<//>
    <p class="faint">${[...dates.filter(Boolean), dateTime(of.uploaded_at)].join(" · ")}</p>
    <p class="passage-text">${children}</p></div>`;
}
