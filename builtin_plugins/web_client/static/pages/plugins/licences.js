/** One's licences of plugins. */

import { html } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { ago, day, number, t } from "../../lib/words.js";
import { Badge, Empty, Head, Loaded } from "../../parts/basics.js";
import { PluginTabs } from "./tabs.js";

export default function Licences() {
  const found = useResource((signal) => api.licences({ signal }));
  return html`<div class="page">
    <${Head} title=${t("Plugins")} about=${t("What you have licences for.")} />
    <${PluginTabs} current="/plugins/licences" />
    <${Loaded} of=${found}>${({ licenses }) =>
      licenses.length
        ? html`<div class="table-box" tabindex="0" role="region" aria-label=${t("Licences")}><table>
            <thead><tr><th>${t("Plugin")}</th><th>${t("Tier")}</th><th>${t("State")}</th><th>${t("Works until")}</th><th class="number">${t("Used")}</th><th>${t("Last used")}</th></tr></thead>
            <tbody>${licenses.map(
              (licence) => html`<tr key=${licence.id}><td><span class="name">${licence.plugin_display_name}</span></td><td>${licence.tier}</td>
                <td>${licence.active ? html`<${Badge} tone="good">${t("Active")}<//>` : html`<${Badge}>${t("Ended")}<//>`}</td>
                <td>${licence.valid_until ? day(licence.valid_until) : t("without end")}</td><td class="number">${number(licence.usage_count)}</td><td>${licence.last_used_at ? ago(licence.last_used_at) : t("never")}</td></tr>`,
            )}</tbody></table></div>`
        : html`<${Empty} icon="keys" title=${t("No licences")}>${t("Free plugins need none. A licence shows up here once you or your organization has one.")}<//>`
    }<//>
  </div>`;
}
