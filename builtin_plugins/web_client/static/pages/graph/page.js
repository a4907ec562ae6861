/** The graph of a knowledge base: its entities, what connects them, and what its documents have in common. */

import { html, useEffect, useMemo, useState } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { useAction, usePolling, useResource } from "../../lib/resource.js";
import { query, setQuery } from "../../lib/router.js";
import { owns } from "../../lib/session.js";
import { plural, t } from "../../lib/words.js";
import { Button, Empty, Failure, Head, Loaded, Tabs } from "../../parts/basics.js";
import { PickBase, baseIn } from "../../parts/pick-base.js";
import { Correlations } from "./correlations.js";
import { Entity } from "./entity.js";
import { Picture } from "./picture.js";
import { KINDS, kindOfEntity, telling, withoutValues } from "./telling.js";
import { Topics } from "./topics.js";

const MOST = 2000;
const LISTED = 80;

export default function Graph() {
  const bases = useResource((signal) => everything(api.knowledgeBases, { signal }));
  return html`<div class="page">
    <${Loaded} of=${bases}>${(list) => {
      const base = baseIn(list, (item) => item.graph);
      return html`
        <${Head} title=${t("Graph")} about=${t("The people, places and things that your documents name, and what connects them.")} />
        ${!list.length ? html`<${Empty} icon="graph" title=${t("Nothing to draw yet")} action=${html`<${Button} kind="primary" to="/documents">${t("Add documents")}<//>`}>${t("First make a knowledge base and add documents to it.")}<//>`
          : html`<${PickBase} list=${list} base=${base} onPick=${(id) => setQuery({ base: id, entity: null })} />
            ${base && (base.graph ? html`<${Base} key=${base.id} base=${base} />` : html`<${TurnOn} base=${base} onChanged=${bases.reload} />`)}`}`;
    }}<//>
  </div>`;
}

function TurnOn({ base, onChanged }) {
  const mine = owns(base);
  const turn = useAction(async () => {
    await api.changeKnowledgeBase({ kb_id: base.id, body: { graph: true } });
    await onChanged();
  });
  const action = mine && html`<${Button} kind="primary" busy=${turn.busy} onClick=${turn.run}>${t("Build the graph")}<//>`;
  return html`<${Failure} error=${turn.error} />
    <${Empty} icon="graph" title=${t("This knowledge base has no graph")} action=${action}>${t("A graph is built from the documents without a model, and grows and shrinks with them.")}<//>`;
}

const TABS = { "": "Picture", topics: "Topics", correlations: "Correlations" };

function Base({ base }) {
  const show = query.value.get("show") ?? "";
  const address = (name) => `/graph?${new URLSearchParams({ base: base.id, ...(name ? { show: name } : {}) })}`;
  return html`
    <${Tabs} label=${t("Views of the graph")} current=${address(show)} tabs=${Object.entries(TABS).map(([name, title]) => ({ title: t(title), to: address(name) }))} />
    ${show === "topics" && html`<${Topics} base=${base} />`}
    ${show === "correlations" && html`<${Correlations} base=${base} />`}
    ${show === "" && html`<${Entities} base=${base} />`}`;
}

function Entities({ base }) {
  const found = useResource((signal) => api.graphNetwork({ query: { kb_id: base.id, limit: MOST }, signal }), [base.id]);
  const chosen = query.value.get("entity") ?? "";
  const choose = (name) => setQuery({ entity: name || null });
  usePolling(found.reload, 3_000, found.data?.entities.length === 0);
  return html`<${Loaded} of=${found}>${(network) =>
    network.entities.length
      ? html`<${Network} base=${base} network=${network} chosen=${chosen} choose=${choose} />`
      : html`<${Empty} icon="graph" title=${t("Nothing found yet")}>${t("The graph is being built, or the documents name nothing that could be drawn.")}<//>`
  }<//>`;
}

/** The picture begins with few and grows by each click; the list below finds all, values, too. */
function Network({ base, network, chosen, choose }) {
  const [text, setText] = useState("");
  const [opened, setOpened] = useState([]);
  const [kinds, setKinds] = useState([]);
  const things = useMemo(() => withoutValues(network), [network]);
  const names = chosen ? [...new Set([...opened, chosen])] : opened;
  const drawn = useMemo(() => telling(things, names, kinds), [things, names.join("\n"), kinds]);
  useEffect(() => setOpened(names), [chosen]);
  const wanted = text.toLowerCase();
  const fitting = network.entities.filter((entity) => entity.text.toLowerCase().includes(wanted));
  const there = new Set(things.entities.map(kindOfEntity));
  const toggle = (kind) => setKinds(kinds.includes(kind) ? kinds.filter((other) => other !== kind) : [...kinds, kind]);
  const rest = things.entities.length - drawn.entities.length;
  return html`<div class="row" role="group" aria-label=${t("Kinds to draw")}>
      ${Object.entries(KINDS).filter(([kind]) => there.has(kind) && (there.size > 1 || kinds.length)).map(([kind, { title }]) => html`<${Button} small key=${kind} aria-pressed=${kinds.includes(kind)} class=${kinds.includes(kind) ? "pressed" : ""} onClick=${() => toggle(kind)}>${t(title)}<//>`)}
      ${opened.length > 0 && html`<${Button} small kind="quiet" icon="retry" onClick=${() => { setOpened([]); choose(""); }}>${t("Draw fewer again")}<//>`}
    </div>
    <div class=${chosen ? "graph-view with-entity" : "graph-view"}>
      <${Picture} network=${drawn} chosen=${chosen} onChoose=${choose} />
      ${chosen && html`<${Entity} base=${base} name=${chosen} onChoose=${choose} />`}
    </div>
    ${rest > 0 && html`<p class="muted">${plural(rest, "One more is not drawn: click on an entity to see what it is connected with.", "{n} more are not drawn: click on an entity to see what it is connected with.")}</p>`}
    <section class="stack" aria-labelledby="entities"><h2 id="entities">${t("Entities")}</h2>
      <div class="filters"><input class="input search" type="search" placeholder=${t("Find an entity")} aria-label=${t("Find an entity")} value=${text} onInput=${(event) => setText(event.target.value)} /></div>
      <div class="row">${fitting.slice(0, LISTED).map((entity) => html`<${Button} small key=${entity.text} aria-pressed=${entity.text === chosen} class=${entity.text === chosen ? "pressed" : ""} onClick=${() => choose(entity.text)}>${entity.text}<//>`)}</div>
      ${fitting.length > LISTED && html`<p class="muted">${plural(fitting.length - LISTED, "One more matches", "{n} more match")}</p>`}
    </section>`;
}
