/** What documents have in common beyond words, with the sentences that show it. */

import { html } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { Link } from "../../lib/router.js";
import { percent, t } from "../../lib/words.js";
import { Badge, Empty, Loaded } from "../../parts/basics.js";

async function load(base, signal) {
  const [documents, found] = await Promise.all([everything(api.documents, { kb_id: base, signal }), api.correlations({ query: { limit: 100 }, signal })]);
  const names = new Map(documents.map((one) => [one.document_id, one.filename]));
  return { names, items: found.items.filter((one) => names.has(one.source) || names.has(one.target)) };
}

export function Correlations({ base }) {
  const found = useResource((signal) => load(base.id, signal), [base.id]);
  return html`<${Loaded} of=${found}>${({ names, items }) =>
    items.length
      ? html`<div class="stack">${items.map((item) => html`<${Pair} key=${`${item.source} ${item.target}`} base=${base.id} item=${item} names=${names} />`)}</div>`
      : html`<${Empty} icon="graph" title=${t("No correlations")}>${t("No two documents name the same rare things.")}<//>`
  }<//>`;
}

function Pair({ base, item, names }) {
  const title = (id) => (names.has(id) ? html`<${Link} to=${`/documents/${base}/${id}`}>${names.get(id)}<//>` : (item.evidence.find((one) => one.document_id === id)?.title ?? id));
  return html`<article class="panel">
    <div class="row"><strong>${title(item.source)}</strong><span aria-hidden="true">↔</span><strong>${title(item.target)}</strong><span class="grow"></span><${Badge} tone="accent">${percent(item.score)}<//></div>
    <div class="row">${item.shared.slice(0, 10).map((name) => html`<${Badge} key=${name}>${name}<//>`)}</div>
    ${item.evidence.slice(0, 4).map((one) => html`<p class="muted">“${one.snippet}”</p>`)}
  </article>`;
}
