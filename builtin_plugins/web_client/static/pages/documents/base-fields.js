/** The fields that a knowledge base's documents can have, and the rules that fill them. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction, useResource } from "../../lib/resource.js";
import { plural, t } from "../../lib/words.js";
import { Badge, Button, Failure, Loaded } from "../../parts/basics.js";
import { Check, Field, Form } from "../../parts/forms.js";
import { Confirm, Dialog, say } from "../../parts/layers.js";
import { saveBlob } from "../../parts/save.js";
import { titleOf } from "./fields.js";

const KINDS = { text: "Text", number: "Number", date: "Date", boolean: "Yes or no", person: "Person" };

export function BaseFields({ base, onClose }) {
  const found = useResource((signal) => api.fields({ kb_id: base.id, signal }), [base.id]);
  const [removing, setRemoving] = useState(null);
  const remove = async () => {
    await api.deleteField({ kb_id: base.id, name: removing.name });
    found.reload();
    say(t("The field is removed."));
  };
  return html`<${Dialog} title=${t("Fields of documents")} onClose=${onClose} wide>
    <p class="muted">${t("Documents can be described by fields. Every knowledge base has some; give this one more.")}</p>
    <${Loaded} of=${found}>${({ items }) => html`
      <${Own} base=${base.id} fields=${items.filter((field) => !field.built_in)} onShown=${found.set} onSaved=${found.reload} onRemove=${setRemoving} />
      <${NewField} base=${base.id} onSaved=${found.reload} />
      <details><summary>${t("Fields that every knowledge base has")}</summary>
        <p>${items.filter((field) => field.built_in && field.can_be_set).map(titleOf).join(", ")}</p></details>
      <${Rules} base=${base.id} fields=${items.filter((field) => field.can_be_set)} />
      <${ValueTable} base=${base.id} />
    `}<//>
    ${removing && html`<${Confirm} title=${t("Remove the field “{name}”?", { name: removing.name })} confirm=${t("Remove")} onConfirm=${remove} onClose=${() => setRemoving(null)}>
      <p>${t("Its values in all documents are removed, too.")}</p><//>`}
  <//>`;
}

function Own({ base, fields, onShown, onSaved, onRemove }) {
  const propose = useAction(async ({ name, kind, many, description }, wanted) => {
    onShown((was) => ({ ...was, items: was.items.map((one) => (one.name === name ? { ...one, propose: wanted } : one)) }));
    await api.putField({ kb_id: base, name, body: { kind, many, description, propose: wanted } }).finally(onSaved);
  });
  if (!fields.length) return html`<p>${t("It has no fields of its own yet.")}</p>`;
  return html`<${Failure} error=${propose.error} /><ul class="list">${fields.map(
    (field) => html`<li key=${field.name} class="panel"><div class="row">
      <span class="grow anywhere"><strong>${field.name}</strong>${field.description && html` <span class="faint">${field.description}</span>`}</span>
      <${Badge}>${t(KINDS[field.kind])}<//>${field.many && html`<${Badge}>${t("several")}<//>`}
      <${Button} small kind="quiet" icon="trash" aria-label=${t("Remove {name}", { name: field.name })} onClick=${() => onRemove(field)} /></div>
      ${field.kind !== "person" && html`<${Check} label=${t("A model proposes values of “{name}”", { name: field.name })} checked=${field.propose} onChange=${(wanted) => propose.run(field, wanted)} />`}</li>`,
  )}</ul><p class="faint">${t("What a model proposes is shown with each document. It counts once somebody accepts it.")}</p>`;
}

function NewField({ base, onSaved }) {
  const [name, setName] = useState("");
  const [kind, setKind] = useState("text");
  const [many, setMany] = useState(false);
  const action = useAction(async () => {
    await api.putField({ kb_id: base, name: name.trim(), body: { kind, many } });
    setName("");
    setMany(false);
    onSaved();
  });
  return html`<${Form} action=${action} submit=${t("Add the field")} submitKind="plain" disabled=${!name.trim()}>
    <h3>${t("A new field")}</h3>
    <${Field} label=${t("Name")} value=${name} onInput=${setName} hint=${t("Letters, digits and underscores")} autocomplete="off" />
    <${Field} as="select" pick label=${t("Kind")} value=${kind} onInput=${setKind}>
      ${Object.entries(KINDS).map(([value, title]) => html`<option key=${value} value=${value}>${t(title)}</option>`)}
    <//>
    <${Check} label=${t("A document may have several values")} checked=${many} onChange=${setMany} />
  <//>`;
}

function Rules({ base, fields }) {
  const found = useResource((signal) => api.metadataRules({ kb_id: base, signal }), [base]);
  const save = useAction(async (rules) => {
    found.set(await api.putMetadataRules({ kb_id: base, body: { rules } }));
    say(t("The rules are being applied to the documents."));
  });
  return html`<h3>${t("Rules")}</h3>
    <p class="muted">${t("A rule fills a field of all documents whose path fits. What you set by hand stays.")}</p>
    <${Failure} error=${save.error} />
    <${Loaded} of=${found}>${({ rules }) => html`
      ${rules.length > 0 && html`<ul class="list">${rules.map(
        (rule, place) => html`<li key=${`${place}${rule.pattern}`} class="panel"><div class="row">
          <div class="grow stack close anywhere"><code>${rule.pattern}</code>
            <span>${titleOf(fields.find((field) => field.name === rule.field) ?? { name: rule.field })}: ${valueOf(rule)}</span></div>
          <${Button} small kind="quiet" icon="trash" busy=${save.busy} aria-label=${t("Remove the rule {pattern}", { pattern: rule.pattern })} onClick=${() => save.run(rules.filter((_, other) => other !== place))} /></div></li>`,
      )}</ul>`}
      <${NewRule} fields=${fields} onAdd=${(rule) => save.run([...rules, rule])} />
    `}<//>`;
}

/** The values of all documents, to edit in a spreadsheet. */
function ValueTable({ base }) {
  const load = useAction(async () => saveBlob(await (await api.metadataTable({ kb_id: base })).blob(), "metadata.csv"));
  const send = useAction(async ({ target }) => {
    const [file] = target.files;
    target.value = "";
    if (!file) return;
    const { documents } = await api.putMetadataTable({ kb_id: base, body: new Blob([file], { type: "text/csv" }) });
    say(plural(documents, "One document has changed.", "{n} documents have changed."));
  });
  return html`<h3>${t("As a table")}</h3>
    <p class="muted">${t("Download the values of all documents as CSV, edit them in a spreadsheet, and send the file back. An empty cell removes a value.")}</p>
    <${Failure} error=${load.error ?? send.error} />
    <div class="row"><${Button} icon="download" busy=${load.busy} onClick=${load.run}>${t("Download the table")}<//>
      <label class="button button-plain"><span>${t("Send the table back")}</span><input class="hidden" type="file" accept=".csv,text/csv" disabled=${send.busy} onChange=${send.run} /></label></div>`;
}

function valueOf({ value, part, field }) {
  if (value === null) return html`<code>{${part ?? field}}</code>`;
  return Array.isArray(value) ? value.join(", ") : String(value);
}

function NewRule({ fields, onAdd }) {
  const [pattern, setPattern] = useState("");
  const [name, setName] = useState("tags");
  const [value, setValue] = useState("");
  const action = useAction(async () => {
    if (!(await onAdd({ pattern: pattern.trim(), field: name, value: value.trim() || null }))) return;
    setPattern("");
    setValue("");
  });
  return html`<${Form} action=${action} submit=${t("Add the rule")} submitKind="plain" disabled=${!pattern.trim()}>
    <${Field} label=${t("Path")} value=${pattern} onInput=${setPattern} placeholder="contracts/{year}/*.pdf" hint=${t("* stands for any part of a name, ** for any folders, {year} for a part that becomes the value.")} autocomplete="off" />
    <${Field} as="select" pick label=${t("Field")} value=${name} onInput=${setName}>
      ${fields.map((field) => html`<option key=${field.name} value=${field.name}>${titleOf(field)}</option>`)}
    <//>
    <${Field} label=${t("Value")} value=${value} onInput=${setValue} hint=${t("Leave it empty to use the part of the path that is named like the field.")} optional autocomplete="off" />
  <//>`;
}
