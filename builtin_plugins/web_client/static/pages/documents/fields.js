/** The fields of a document: their values, where these come from, and editing them. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction, useResource } from "../../lib/resource.js";
import { dateTime, day, number, t } from "../../lib/words.js";
import { Badge, Button, Failure, Loaded } from "../../parts/basics.js";
import { Field, Form } from "../../parts/forms.js";
import { Dialog, say } from "../../parts/layers.js";

const TITLES = {
  tags: "Tags",
  title: "Title",
  subject: "Subject",
  author: "Author",
  keywords: "Keywords",
  language: "Language",
  created: "Created",
  modified: "Changed",
  from: "From",
  to: "To",
  sent: "Sent",
  valid_from: "Valid from",
  valid_until: "Valid until",
};
const ORIGINS = { hand: "", source: "from its source", rule: "by a rule", file: "from the file", text: "from its text" };
const HINTS = { number: "A number", date: "A date such as 2026-03-01", person: "The user name of somebody you work with" };
const ALWAYS = ["tags", "title", "author"];

/** A field's title: built-in ones have a translated one. */
export const titleOf = (field) => (field.built_in && TITLES[field.name] ? t(TITLES[field.name]) : field.name);

/** What documents say about themselves, and who says so; `mine` if it can be changed. */
export function DocumentFields({ base, id, mine }) {
  const found = useResource(
    async (signal) => {
      const [fields, said] = await Promise.all([
        api.fields({ kb_id: base, signal }),
        api.documentMetadata({ kb_id: base, document_id: id, signal }),
      ]);
      return { fields: fields.items.filter((field) => field.can_be_set), said };
    },
    [base, id],
  );
  const [editing, setEditing] = useState(false);
  const save = (said) => found.set((was) => ({ ...was, said }));
  return html`<section class="stack close">
    <div class="row"><h2 class="grow">${t("Fields")}</h2>
      ${mine && found.data && html`<${Button} small icon="edit" onClick=${() => setEditing(true)}>${t("Edit fields")}<//>`}</div>
    <${Loaded} of=${found}>${({ fields, said }) => html`
      <${Values} fields=${fields} said=${said} />
      <${Proposals} base=${base} id=${id} fields=${fields} said=${said} mine=${mine} onSaved=${save} />
      ${editing && html`<${EditFields} base=${base} id=${id} fields=${fields} said=${said} onSaved=${save} onClose=${() => setEditing(false)} />`}
    `}<//>
  </section>`;
}

function Values({ fields, said }) {
  const filled = fields.filter((field) => field.name in said.metadata);
  if (!filled.length) return html`<p class="muted">${t("No field has a value yet.")}</p>`;
  return html`<dl class="facts">${filled.map(
    (field) => html`<dt key=${field.name}>${titleOf(field)}</dt>
      <dd><${Value} field=${field} value=${said.metadata[field.name]} /> <${Origin} of=${said.origins[field.name]} /></dd>`,
  )}</dl>`;
}

/** What the text says about fields that have no value: it counts once somebody accepts it. */
function Proposals({ base, id, fields, said, mine, onSaved }) {
  const action = useAction(async (name, value) => onSaved(await api.changeDocumentMetadata({ kb_id: base, document_id: id, body: { [name]: value } })));
  const proposed = fields.filter((field) => field.name in said.proposals);
  if (!proposed.length) return null;
  return html`<h3>${t("What the text says")}</h3><${Failure} error=${action.error} />
    <ul class="list">${proposed.map((field) => {
      const value = said.proposals[field.name];
      const name = titleOf(field);
      return html`<li key=${field.name} class="row"><span class="grow">${name}: <${Value} field=${field} value=${value} /></span>
        ${mine && html`<${Button} small busy=${action.busy} aria-label=${t("Accept {name}", { name })} onClick=${() => action.run(field.name, value)}>${t("Accept")}<//>
          <${Button} small kind="quiet" icon="close" aria-label=${t("Reject {name}", { name })} onClick=${() => action.run(field.name, null)} />`}</li>`;
    })}</ul>`;
}

function Value({ field, value }) {
  if (field.many) return html`<span class="row close">${value.map((one) => html`<${Badge} key=${shown(field, one)}>${shown(field, one)}<//>`)}</span>`;
  return shown(field, value);
}

const Origin = ({ of }) => (ORIGINS[of] ? html`<span class="faint">${t(ORIGINS[of])}</span>` : null);

function shown({ kind }, value) {
  if (kind === "number") return number(value, { maximumFractionDigits: 20, useGrouping: false });
  if (kind === "boolean") return value ? t("Yes") : t("No");
  if (kind === "person") return value.name ?? t("Account {id}", { id: value.id });
  if (kind === "date") return value.includes("T") ? dateTime(value) : day(`${value}T00:00:00`);
  return value;
}

/** A value as it is typed: one line for each of several. */
function typed({ kind, many }, value) {
  if (value === undefined) return "";
  const one = (item) => (kind === "person" ? (item.name ?? String(item.id)) : String(item));
  return many ? value.map(one).join("\n") : one(value);
}

function given({ many }, text) {
  if (!many) return text.trim() || null;
  const items = text.split("\n").map((line) => line.trim()).filter(Boolean);
  return items.length ? items : null;
}

function EditFields({ base, id, fields, said, onSaved, onClose }) {
  const before = Object.fromEntries(fields.map((field) => [field.name, typed(field, said.metadata[field.name])]));
  const [texts, setTexts] = useState(before);
  const [more, setMore] = useState([]);
  const action = useAction(async () => {
    const changed = fields.filter(({ name }) => texts[name] !== before[name]);
    const body = Object.fromEntries(changed.map((field) => [field.name, given(field, texts[field.name])]));
    onSaved(await api.changeDocumentMetadata({ kb_id: base, document_id: id, body }));
    onClose();
    say(t("Saved"));
  });
  const isShown = ({ name, built_in: builtIn }) => !builtIn || ALWAYS.includes(name) || before[name] || more.includes(name);
  const others = fields.filter((field) => !isShown(field));
  return html`<${Dialog} title=${t("Fields of this document")} onClose=${onClose}>
    <${Form} action=${action} submit=${t("Save")} onCancel=${onClose}>
      ${fields.filter(isShown).map(
        (field) => html`<${Entry} key=${field.name} field=${field} text=${texts[field.name]} onInput=${(text) => setTexts((was) => ({ ...was, [field.name]: text }))} />`,
      )}
      ${others.length > 0 && html`<${Field} as="select" pick label=${t("Another field")} value="" onInput=${(name) => setMore((was) => [...was, name])}>
        <option value="">${t("Choose …")}</option>
        ${others.map((field) => html`<option key=${field.name} value=${field.name}>${titleOf(field)}</option>`)}
      <//>`}
    <//>
  <//>`;
}

function Entry({ field, text, onInput }) {
  const { kind, many, description, built_in: builtIn } = field;
  const label = titleOf(field);
  if (kind === "boolean" && !many) {
    return html`<${Field} as="select" pick label=${label} hint=${builtIn ? "" : description} value=${text} onInput=${onInput}>
      <option value="">–</option><option value="true">${t("Yes")}</option><option value="false">${t("No")}</option>
    <//>`;
  }
  const hint = [!builtIn && description, many && t("One on each line"), HINTS[kind] && t(HINTS[kind])].filter(Boolean).join(" · ");
  return html`<${Field} as=${many ? "textarea" : "input"} rows=${many ? 3 : undefined} label=${label} hint=${hint} value=${text} onInput=${onInput} autocomplete="off" />`;
}
