/** All knowledge bases that the user can see. */

import { html, useState } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { useAction, usePolling, useResource, useReturning } from "../../lib/resource.js";
import { Link, go, query, setQuery } from "../../lib/router.js";
import { plural, t } from "../../lib/words.js";
import { Button, Empty, Head, Loaded } from "../../parts/basics.js";
import { Field, Form } from "../../parts/forms.js";
import { Dialog } from "../../parts/layers.js";
import { BaseTrash } from "./base-trash.js";
import { ImportBase } from "./exchange.js";
import { IMPORT } from "./upkeep.js";
import { VisibilityBadge, VisibilityChoice, besidesPeople, sharingOf } from "./visibility.js";

const FEW = 8;
const OFTEN = 15_000; // ms

/** Without those of failed or cancelled imports: a later job removes them. */
async function load(signal) {
  const begun = api.jobs({ query: { kind: IMPORT, limit: 50 }, signal }).catch(() => ({ items: [] }));
  const bases = await everything(api.knowledgeBases, { signal });
  const unmade = new Set((await begun).items.filter((job) => ["failed", "cancelled"].includes(job.status)).map((job) => job.subject));
  return bases.filter((base) => !unmade.has(base.id));
}

export default function Documents() {
  const bases = useResource(load);
  // What others share, or no longer do, shows without a reload of the page.
  usePolling(bases.reload, OFTEN);
  useReturning(bases.reload);
  const [text, setText] = useState("");
  const [importing, setImporting] = useState(false);
  const [trash, setTrash] = useState(false);
  const close = () => {
    setImporting(false);
    bases.reload(); // an import makes a knowledge base, and one that ends early takes it away
  };
  const creating = query.value.get("new") === "1";
  const create = () => setQuery({ new: 1 });
  const fits = (base) => `${base.name} ${base.description}`.toLowerCase().includes(text.toLowerCase());
  return html`<div class="page">
    <${Head} title=${t("Documents")} about=${t("A knowledge base holds documents that belong together, and says who may ask them.")}>
      <${Button} kind="quiet" icon="trash" onClick=${() => setTrash(true)}>${t("Trash")}<//>
      <${Button} icon="upload" onClick=${() => setImporting(true)}>${t("Import")}<//>
      <${Button} kind="primary" icon="plus" onClick=${create}>${t("New knowledge base")}<//>
    <//>
    <${Loaded} of=${bases}>${(list) =>
      list.length === 0
        ? html`<${Empty} icon="documents" title=${t("No documents yet")} action=${html`<${Button} kind="primary" icon="plus" onClick=${create}>${t("New knowledge base")}<//>`}>
            ${t("Make a knowledge base, add files, and ask about them. It is private until you share it.")}
          <//>`
        : html`
            ${list.length > FEW && html`<div class="filters"><input class="input search" type="search" placeholder=${t("Find a knowledge base")} aria-label=${t("Find a knowledge base")} value=${text} onInput=${(event) => setText(event.target.value)} /></div>`}
            <div class="cards">${list.filter(fits).map((base) => html`<${Tile} key=${base.id} base=${base} />`)}</div>`
    }<//>
    ${trash && html`<${BaseTrash} onRestored=${bases.reload} onClose=${() => setTrash(false)} />`}
    ${importing && html`<${ImportBase} onClose=${close} />`}
    ${creating && html`<${Create} onClose=${() => setQuery({ new: null })} />`}
  </div>`;
}

const Tile = ({ base }) => html`<${Link} class="tile" to=${`/documents/${base.id}`}>
  <h2>${base.name}</h2>
  ${base.description && html`<p>${base.description}</p>`}
  <div class="tile-foot"><${VisibilityBadge} of=${base} /><span>${plural(base.document_count, "One document", "{n} documents")}</span></div>
<//>`;

function Create({ onClose }) {
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const [seen, setSeen] = useState({ visibility: "private" });
  const action = useAction(async () => {
    const base = await api.createKnowledgeBase({ body: { name, description, ...sharingOf(seen) } });
    setQuery({ new: null });
    go(`/documents/${base.id}`);
  });
  const wrong = action.error?.fields ?? {};
  return html`<${Dialog} title=${t("New knowledge base")} onClose=${onClose}>
    <${Form} action=${besidesPeople(action)} submit=${t("Create")} onCancel=${onClose} disabled=${!name.trim()}>
      <${Field} label=${t("Name")} value=${name} onInput=${setName} error=${wrong.name} required autofocus />
      <${Field} label=${t("Description")} as="textarea" value=${description} onInput=${setDescription} error=${wrong.description} optional />
      <${VisibilityChoice} value=${seen} error=${action.error} onChange=${setSeen} />
    <//>
  <//>`;
}
