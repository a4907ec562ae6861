/** The sources of a knowledge base. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { usePolling, useResource } from "../../lib/resource.js";
import { Link, go } from "../../lib/router.js";
import { plural, t } from "../../lib/words.js";
import { Button, Empty, Head, Loaded } from "../../parts/basics.js";
import { AddSource } from "./add.js";
import { titled } from "./forms.js";
import { RunState, figuresOf, isActive, lastOf, nextOf } from "./states.js";

const PAUSE = 1_500;

async function load(base, signal) {
  const [home, { items }, kinds] = await Promise.all([api.knowledgeBase({ kb_id: base, signal }), api.sources({ kb_id: base, signal }), api.sourceKinds({ signal })]);
  return { home, items, kinds: kinds.items };
}

export default function Sources({ base }) {
  const found = useResource((signal) => load(base, signal), [base]);
  const [adding, setAdding] = useState(false);
  usePolling(found.reload, PAUSE, found.data?.items.some((one) => isActive(one.last_run) || one.is_leaving) ?? false);
  return html`<div class="page">
    <${Loaded} of=${found} back=${{ to: `/documents/${base}`, title: t("Documents") }}>${({ home, items, kinds }) => html`
      <${Head} title=${t("Sources")} about=${t("What changes there changes here: new documents are fetched, and what is gone is deleted.")} back=${{ to: `/documents/${base}`, title: home.name }}>
        ${kinds.length > 0 && html`<${Button} kind="primary" icon="plus" onClick=${() => setAdding(true)}>${t("Add a source")}<//>`}<//>
      ${!kinds.length && html`<p class="muted">${t("No plugin brings a kind of source.")}</p>`}
      ${!items.length && html`<${Empty} icon="globe" title=${t("No sources yet")}>${t("Name a folder or a repository instead of uploading its files.")}<//>`}
      <ul class="list">${items.map((one) => html`<${Tile} key=${one.id} base=${base} source=${one} kind=${kinds.find(({ name }) => name === one.kind)} />`)}</ul>
      ${adding && html`<${AddSource} base=${base} kinds=${kinds} onAdded=${(made) => go(`/documents/${base}/sources/${made.id}`)} onClose=${() => setAdding(false)} />`}
    `}<//>
  </div>`;
}

function Tile({ base, source, kind }) {
  const run = source.last_run;
  return html`<li class="panel stack close">
    <div class="row"><strong class="grow"><${Link} to=${`/documents/${base}/sources/${source.id}`}>${source.name}<//></strong>
      ${source.is_leaving ? html`<span class="muted">${t("Is being removed")}</span>` : html`<${RunState} run=${run} />`}</div>
    <p class="muted">${[titled(kind?.title ?? source.kind), plural(source.items.stored ?? 0, "One document", "{n} documents"), lastOf(run), nextOf(source)].filter(Boolean).join(" · ")}</p>
    ${run && html`<p>${figuresOf(run)}</p>`}
    ${source.problem && html`<p class="bad">${source.problem}</p>`}
  </li>`;
}
