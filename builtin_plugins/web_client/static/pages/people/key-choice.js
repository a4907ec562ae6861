/** Choosing rights, for a role or a group. */

import { html } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { t } from "../../lib/words.js";
import { Loaded } from "../../parts/basics.js";
import { Check } from "../../parts/forms.js";

export const toggled = (list, one, on) => (on ? [...list, one] : list.filter((other) => other !== one));

export function KeyChoice({ value, onChange }) {
  const known = useResource((signal) => api.permissions({ signal }));
  return html`<${Loaded} of=${known}>${({ permissions }) => html`<fieldset class="choice scroll"><legend>${t("Rights")}</legend>
    ${permissions.filter((item) => item.scope === "organization").map((item) => html`<${Check} key=${item.key} label=${item.description} hint=${item.key} checked=${value.includes(item.key)} onChange=${(on) => onChange(toggled(value, item.key, on))} />`)}
  </fieldset>`}<//>`;
}
