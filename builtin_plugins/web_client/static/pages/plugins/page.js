/** Plugins of this server: what runs, what doesn't and why. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { Link } from "../../lib/router.js";
import { t } from "../../lib/words.js";
import { Badge, Head, Loaded } from "../../parts/basics.js";
import { PluginTabs } from "./tabs.js";

const TONES = { enabled: "good", registered: "neutral", disabled: "neutral", error: "bad" };
const WORDS = { enabled: "On", registered: "Registered", disabled: "Off", error: "Out of service" };

export const PluginState = ({ of }) => html`<${Badge} tone=${TONES[of.status]}>${t(WORDS[of.status] ?? of.status)}<//>`;

export default function Plugins() {
  const found = useResource((signal) => api.plugins({ query: { limit: 500 }, signal }));
  const [text, setText] = useState("");
  const fits = (plugin) => `${plugin.name} ${plugin.description}`.toLowerCase().includes(text.toLowerCase());
  return html`<div class="page">
    <${Head} title=${t("Plugins")} about=${t("Everything this server can do comes from plugins.")} />
    <${PluginTabs} current="/plugins" />
    <${Loaded} of=${found}>${({ plugins }) => html`
      <div class="filters"><input class="input search" type="search" placeholder=${t("Find a plugin")} aria-label=${t("Find a plugin")} value=${text} onInput=${(event) => setText(event.target.value)} /></div>
      <div class="cards">${plugins.filter(fits).map(
        (plugin) => html`<${Link} class="tile" key=${plugin.name} to=${`/plugins/${encodeURIComponent(plugin.name)}`}>
          <h2>${plugin.name}</h2><p>${plugin.reason ?? plugin.description}</p>
          <div class="tile-foot"><${PluginState} of=${plugin} /><span>${plugin.version}</span></div><//>`,
      )}</div>`}<//>
  </div>`;
}
