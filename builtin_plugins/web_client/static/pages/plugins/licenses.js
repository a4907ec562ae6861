/** One's licenses of plugins. */

import { html } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { ago, day, number, t } from "../../lib/words.js";
import { Badge, Empty, Head, Loaded } from "../../parts/basics.js";
import { PluginTabs } from "./tabs.js";

export default function Licenses() {
  const found = useResource((signal) => api.licenses({ signal }));
  return html`<div class="page">
    <${Head} title=${t("Plugins")} about=${t("What you have licenses for.")} />
    <${PluginTabs} current="/plugins/licenses" />
    <${Loaded} of=${found}>${({ licenses }) =>
      licenses.length
        ? html`<div class="table-box" tabindex="0" role="region" aria-label=${t("Licenses")}><table>
            <thead><tr><th>${t("Plugin")}</th><th>${t("Tier")}</th><th>${t("State")}</th><th>${t("Works until")}</th><th class="number">${t("Used")}</th><th>${t("Last used")}</th></tr></thead>
            <tbody>${licenses.map(
              (license) => html`<tr key=${license.id}><td><span class="name">${license.plugin_display_name}</span></td><td>${license.tier}</td>
                <td>${license.active ? html`<${Badge} tone="good">${t("Active")}<//>` : html`<${Badge}>${t("Ended")}<//>`}</td>
                <td>${license.valid_until ? day(license.valid_until) : t("without end")}</td><td class="number">${number(license.usage_count)}</td><td>${license.last_used_at ? ago(license.last_used_at) : t("never")}</td></tr>`,
            )}</tbody></table></div>`
        : html`<${Empty} icon="keys" title=${t("No licenses")}>${t("Free plugins need none. A license shows up here once you or your organization has one.")}<//>`
    }<//>
  </div>`;
}
