/** Narrowing to some documents by the values of their fields: what can be chosen, and what is. */

import { html } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { kindOf, number, t } from "../../lib/words.js";
import { Button, Loaded } from "../../parts/basics.js";
import { titleOf } from "./fields.js";

const ROW_TITLES = { folder: "Folder", content_type: "Type", uploaded_at: "Uploaded" };
const BUILT_IN = ["tags", "folder", "author", "language", "created", "uploaded_at", "content_type"];
const COUNTED = ["text", "boolean", "date"];
const MOST_FIELDS = 20;
const MOST_VALUES = 12;
const MOST_BASES = 5;

/** The filter that some choices stand for: of one field any value, of several fields all. None without choices. */
export function filterOf(choices) {
  if (!choices.length) return undefined;
  const values = {};
  for (const { field, value } of choices) (values[field] ??= []).push(value);
  return values;
}

const same = (one, other) => one.field === other.field && one.value === other.value;

/** What is chosen, each removable. */
export function Choices({ choices, onChange }) {
  if (!choices.length) return null;
  return html`<div class="row" role="group" aria-label=${t("Only these documents")}>
    ${choices.map((choice) => html`<${Button} small icon="close" class="pressed" key=${`${choice.field} ${choice.value}`} aria-label=${t("Remove the filter {name}", { name: labelOf(choice) })}
      onClick=${() => onChange(choices.filter((one) => !same(one, choice)))}><span class="clip">${labelOf(choice)}</span><//>`)}
  </div>`;
}

const labelOf = ({ title, field, value }) => `${title}: ${shown(field, value)}`;

function shown(field, value) {
  if (field === "content_type") return kindOf(value);
  if (typeof value === "boolean") return value ? t("Yes") : t("No");
  return String(value);
}

/** What can be chosen: the values of the fields, with how many documents have them. */
export function Facets({ bases, pipeline, choices, onChange }) {
  const key = JSON.stringify([bases, pipeline, choices]);
  const found = useResource((signal) => load(bases, pipeline, choices, signal), [key]);
  const choose = (choice) => onChange(choices.some((one) => same(one, choice)) ? choices.filter((one) => !same(one, choice)) : [...choices, choice]);
  return html`<${Loaded} of=${found} lines=${2}>${({ facets, titles }) => html`<div class="facets" role="group" aria-label=${t("Filter documents")}>
    ${facets.length === 0 && html`<p class="muted">${t("These documents have no values to filter by.")}</p>`}
    ${facets.map((facet) => html`<fieldset class="facet" key=${facet.field}><legend>${titles[facet.field]}</legend>
      ${facet.values.map(({ value, count }) => {
        const choice = { field: facet.field, title: titles[facet.field], value };
        const isChosen = choices.some((one) => same(one, choice));
        return html`<${Button} small key=${value} aria-pressed=${isChosen} class=${isChosen ? "pressed" : ""} onClick=${() => choose(choice)}><span class="clip">${shown(facet.field, value)}</span> <span class="faint">${number(count)}</span><//>`;
      })}</fieldset>`)}
  </div>`}<//>`;
}

async function load(bases, pipeline, choices, signal) {
  const lists = await Promise.all(bases.slice(0, MOST_BASES).map((id) => api.fields({ kb_id: id, signal })));
  const all = lists.flatMap((list) => list.items);
  // A field that is a text in one knowledge base and a number in another can't be counted together.
  const alike = all.filter((field) => all.every((other) => other.name !== field.name || other.kind === field.kind));
  const known = new Map(alike.map((field) => [field.name, field]));
  const own = [...known.values()].filter((field) => !field.built_in && COUNTED.includes(field.kind)).map((field) => field.name);
  const names = [...own, ...BUILT_IN.filter((name) => known.has(name))].slice(0, MOST_FIELDS);
  const titles = Object.fromEntries(names.map((name) => [name, ROW_TITLES[name] ? t(ROW_TITLES[name]) : titleOf(known.get(name))]));
  const body = { fields: names, filter: filterOf(choices), limit: MOST_VALUES };
  const counted = await (pipeline ? api.pipelineFacets({ pipeline_id: pipeline, body, signal }) : api.facets({ kb_id: bases[0], body, signal }));
  return { titles, facets: counted.facets.filter((facet) => facet.values.length > 1 || facet.values.some(({ count }) => count < counted.total)) };
}
