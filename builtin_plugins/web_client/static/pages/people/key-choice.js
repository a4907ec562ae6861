/** Choosing rights, and groups of them, for a role or a group. */

import { html } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { t } from "../../lib/words.js";
import { Loaded } from "../../parts/basics.js";
import { Check } from "../../parts/forms.js";

const toggled = (list, one, on) => (on ? [...list, one] : list.filter((other) => other !== one));

export function KeyChoice({ value, onChange }) {
  const known = useResource((signal) => api.permissions({ signal }));
  return html`<${Loaded} of=${known}>${({ permissions }) => html`<fieldset class="choice scroll"><legend>${t("Rights")}</legend>
    ${permissions.filter((item) => item.scope === "organization").map((item) => html`<${Check} key=${item.key} label=${item.description} hint=${item.key} checked=${value.includes(item.key)} onChange=${(on) => onChange(toggled(value, item.key, on))} />`)}
  </fieldset>`}<//>`;
}

export function GroupChoice({ legend, groups, value, onChange }) {
  if (!groups.length) return null;
  return html`<fieldset class="choice scroll"><legend>${legend}</legend>
    ${groups.map((group) => html`<${Check} key=${group.id} label=${group.name} hint=${group.description} checked=${value.includes(group.id)} onChange=${(on) => onChange(toggled(value, group.id, on))} />`)}
  </fieldset>`;
}
