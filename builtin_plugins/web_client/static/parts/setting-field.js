/** The field of a setting, as its plugin describes it. */

import { html } from "../lib/html.js";
import { t } from "../lib/words.js";
import { Check, Field } from "./forms.js";

/** `field` comes from the plugin's configuration; secrets are never shown. `label` is the key, if nothing else is given. */
export function SettingField({ field, label = field.key, value, onChange }) {
  const hint = field.fixed_by ? t("{name} in the server’s environment sets this, and wins.", { name: field.fixed_by }) : field.description;
  const shown = { label, hint, disabled: Boolean(field.fixed_by) };
  if (field.type === "bool") return html`<${Check} ...${shown} checked=${Boolean(value)} onChange=${onChange} />`;
  if (field.options) {
    return html`<${Field} as="select" ...${shown} value=${value} onInput=${onChange}>${field.options.map((option) => html`<option value=${option}>${option}</option>`)}<//>`;
  }
  if (field.secret) return html`<${Field} ...${shown} type="password" autocomplete="off" placeholder=${value ? "••••••••" : ""} onInput=${onChange} />`;
  const isNumber = ["int", "float"].includes(field.type);
  const take = (text) => onChange(isNumber && text !== "" ? Number(text) : text);
  return html`<${Field} ...${shown} type=${isNumber ? "number" : "text"} step=${field.type === "float" ? "any" : undefined} value=${value ?? ""} onInput=${take} />`;
}
