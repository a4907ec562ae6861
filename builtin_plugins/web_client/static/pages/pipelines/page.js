/** Pipelines: which knowledge bases are asked together, and what this server can do with them. */

import { html, useState } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { useAction, useResource } from "../../lib/resource.js";
import { query, setQuery } from "../../lib/router.js";
import { owns } from "../../lib/session.js";
import { ago, plural, t } from "../../lib/words.js";
import { Badge, Button, Empty, Head, Loaded } from "../../parts/basics.js";
import { Check, Field, Form } from "../../parts/forms.js";
import { Confirm, Dialog, Menu, say } from "../../parts/layers.js";
import { methodAbout, methodCost, methodTitle } from "../../parts/methods.js";
import { StillPrivate, VisibilityBadge, VisibilityChoice, besidesPeople, changesOf, sharingOf } from "../documents/visibility.js";

async function load(signal) {
  const [pipelines, bases, offered] = await Promise.all([
    everything(api.pipelines, { signal }),
    everything(api.knowledgeBases, { signal }),
    api.methods({ signal }),
  ]);
  return { pipelines, bases, offered };
}

export default function Pipelines() {
  const found = useResource(load);
  const [dialog, setDialog] = useState(null);
  const creating = query.value.get("new") === "1";
  const create = () => setQuery({ new: 1 });
  return html`<div class="page">
    <${Head} title=${t("Pipelines")} about=${t("A pipeline asks one or more knowledge bases together. Programs use it as a model.")}>
      <${Button} kind="primary" icon="plus" onClick=${create}>${t("New pipeline")}<//>
    <//>
    <${Loaded} of=${found}>${({ pipelines, bases, offered }) => html`
      ${
        pipelines.length === 0
          ? html`<${Empty} icon="pipelines" title=${t("No pipelines yet")} action=${html`<${Button} kind="primary" icon="plus" onClick=${create}>${t("New pipeline")}<//>`}>
              ${t("You need none to ask a knowledge base. Make one to ask several at once.")}<//>`
          : html`<div class="cards">${pipelines.map((item) => html`<${Tile} key=${item.id} item=${item} bases=${bases} onDialog=${setDialog} />`)}</div>`
      }
      <${Methods} offered=${offered} />
      ${creating && html`<${Edit} bases=${bases} onSaved=${found.reload} onClose=${() => setQuery({ new: null })} />`}
      ${dialog?.kind === "edit" && html`<${Edit} item=${dialog.item} bases=${bases} onSaved=${found.reload} onClose=${() => setDialog(null)} />`}
      ${dialog?.kind === "delete" && html`<${Delete} item=${dialog.item} onDeleted=${found.reload} onClose=${() => setDialog(null)} />`}
    `}<//>
  </div>`;
}

function Tile({ item, bases, onDialog }) {
  const names = item.knowledge_base_ids.map((id) => bases.find((base) => base.id === id)?.name ?? t("one you can’t see"));
  const mine = owns(item);
  return html`<article class="tile">
    <div class="row tight"><h2 class="grow">${item.name}</h2>
      <${Menu} label=${t("More on {name}", { name: item.name })} items=${
        mine && [
          { title: t("Change"), icon: "edit", onSelect: () => onDialog({ kind: "edit", item }) },
          { title: t("Delete"), icon: "trash", danger: true, onSelect: () => onDialog({ kind: "delete", item }) },
        ]
      } /></div>
    <p>${names.join(", ")}</p>
    <div class="tile-foot"><${VisibilityBadge} of=${item} /><span>${ago(item.created_at)}</span><span class="grow"></span>
      <${Button} small icon="ask" to=${`/?pipeline=${item.id}`}>${t("Ask")}<//></div>
  </article>`;
}

const FEW = 8;

function Edit({ item, bases, onSaved, onClose }) {
  const [name, setName] = useState(item?.name ?? "");
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(item?.knowledge_base_ids ?? []);
  const [seen, setSeen] = useState({ visibility: item?.visibility ?? "private", team_id: item?.team_id, organization_id: item?.organization_id });
  const action = useAction(async () => {
    const fields = { name, knowledge_base_ids: chosen };
    if (item) await api.changePipeline({ pipeline_id: item.id, body: changesOf(item, fields, seen) });
    else await api.createPipeline({ body: { ...fields, ...sharingOf(seen) } });
    say(t("Saved"));
    onClose();
    onSaved();
  });
  const fits = (base) => chosen.includes(base.id) || base.name.toLowerCase().includes(text.trim().toLowerCase());
  const toggle = (id, on) => setChosen(on ? [...chosen, id] : chosen.filter((other) => other !== id));
  return html`<${Dialog} title=${item ? item.name : t("New pipeline")} onClose=${onClose}>
    <${Form} action=${besidesPeople(action)} submit=${item ? t("Save") : t("Create")} onCancel=${onClose} disabled=${!name.trim() || !chosen.length}>
      <${Field} label=${t("Name")} value=${name} onInput=${setName} required autofocus />
      <fieldset class="choice scroll"><legend>${t("Knowledge bases to ask")}</legend>
        ${bases.length > FEW && html`<input class="input search" type="search" placeholder=${t("Find a knowledge base")} aria-label=${t("Find a knowledge base")} value=${text} onInput=${(event) => setText(event.target.value)} onKeyDown=${(event) => event.key === "Enter" && event.preventDefault()} />`}
        ${bases.filter(fits).map((base) => html`<${Check} key=${base.id} label=${base.name} hint=${plural(base.document_count, "One document", "{n} documents")} checked=${chosen.includes(base.id)} onChange=${(on) => toggle(base.id, on)} />`)}
        ${!bases.length && html`<p class="muted">${t("Make a knowledge base first.")}</p>`}
      </fieldset>
      <${VisibilityChoice} value=${seen} owner=${item?.owner_user_id} error=${action.error} onChange=${setSeen} />
      <${StillPrivate} visibility=${seen.visibility} bases=${bases.filter((base) => chosen.includes(base.id))} />
    <//>
  <//>`;
}

const Delete = ({ item, onDeleted, onClose }) => html`<${Confirm} title=${t("Delete “{name}”?", { name: item.name })} confirm=${t("Delete")} onClose=${onClose}
  onConfirm=${async () => {
    const { message } = await api.deletePipeline({ pipeline_id: item.id });
    say(message);
    onDeleted();
  }}><p>${t("The knowledge bases and their documents stay.")}</p><//>`;

/** What the server offers, and what it doesn't. */
function Methods({ offered }) {
  return html`<section class="stack">
    <div><h2 id="methods">${t("Methods")}</h2><p class="muted">${t("Ways to answer. Choose one beside the question; without a model, some do less.")}</p></div>
    <div class="table-box" tabindex="0" role="region" aria-labelledby="methods"><table>
      <thead><tr><th>${t("Method")}</th><th>${t("What it does")}</th><th>${t("State")}</th></tr></thead>
      <tbody>${Object.entries(offered.methods).map(
        ([name, on]) => html`<tr key=${name}><td>${methodTitle(name)}<br /><code class="faint">${name}</code></td><td>${methodAbout(name)}<br /><span class="faint">${methodCost(name)}</span></td>
          <td>${on ? html`<${Badge} tone="good">${t("Available")}<//>` : html`<${Badge}>${t("Not on this server")}<//>`}</td></tr>`,
      )}</tbody>
    </table></div>
  </section>`;
}
