/** The settings in effect: each with its value, where that comes from, and how it is changed. */

import { html, useMemo, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction, useResource } from "../../lib/resource.js";
import { query, setQuery } from "../../lib/router.js";
import { plural, t } from "../../lib/words.js";
import { Badge, Button, Loaded } from "../../parts/basics.js";
import { Form } from "../../parts/forms.js";
import { Dialog, say } from "../../parts/layers.js";
import { SettingField } from "../../parts/setting-field.js";
import { OperationsHead } from "./tabs.js";

const SOURCES = { default: "Default", "config.yaml": "config.yaml", environment: "Environment", stored: "Set here" };

const fits = (setting, words) => {
  const text = [setting.owner, setting.name, setting.description, ...setting.variables].join(" ").toLowerCase();
  return words.every((word) => text.includes(word));
};

export default function Settings() {
  const found = useResource((signal) => api.settings({ signal }));
  const [changing, setChanging] = useState(null);
  return html`<div class="page">
    <${OperationsHead} current="/operations/settings" about=${t("What this server runs with. Many settings can be changed here and take effect at once; the others say how they are changed.")} />
    <${Loaded} of=${found}>${({ settings }) => html`<${List} settings=${settings} onChange=${setChanging} />`}<//>
    ${changing && html`<${Change} setting=${changing} onSaved=${found.reload} onClose=${() => setChanging(null)} />`}
  </div>`;
}

function List({ settings, onChange }) {
  const text = query.value.get("q") ?? "";
  const changed = query.value.get("changed") === "1";
  const shown = useMemo(() => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    return settings.filter((setting) => (!changed || setting.source !== "default") && fits(setting, words));
  }, [settings, text, changed]);
  return html`<div class="filters">
      <input class="input search" type="search" placeholder=${t("Find a setting")} aria-label=${t("Find a setting")} value=${text} onInput=${(event) => setQuery({ q: event.target.value })} />
      <${Button} small aria-pressed=${changed} class=${changed ? "pressed" : ""} onClick=${() => setQuery({ changed: changed ? null : 1 })}>${t("Only values that differ from the default")}<//>
    </div>
    <p class="muted" role="status">${plural(shown.length, "One setting", "{n} settings")}</p>
    <div class="table-box" tabindex="0" role="region" aria-label=${t("Settings")}><table class="stacked">
      <thead><tr><th>${t("Name")}</th><th>${t("Value")}</th><th>${t("From")}</th></tr></thead>
      <tbody>${shown.map((setting) => html`<${Row} key=${`${setting.owner}.${setting.name}`} setting=${setting} onChange=${onChange} />`)}</tbody></table></div>`;
}

const keyOf = (setting) => setting.variables[0] ?? setting.name;

/** A long name breaks between its words. */
const breakable = (name) => name.split(/(?<=_)/).map((part) => html`${part}<wbr />`);

const Row = ({ setting, onChange }) => html`<tr>
  <td><code>${breakable(keyOf(setting))}</code><small class="block faint">${setting.description}</small></td>
  <td>${setting.value ? html`<code>${setting.value}</code>` : html`<span class="faint">${t("not set")}</span>`}
    ${setting.source !== "default" && setting.default && html`<small class="block faint">${t("default: {value}", { value: setting.default })}</small>`}</td>
  <td><${Badge} tone=${setting.source === "default" ? "neutral" : "accent"}>${t(SOURCES[setting.source])}<//>
    ${setting.changeable ? html`<div class="block"><${Button} small onClick=${() => onChange(setting)} aria-label=${t("Change {name}", { name: keyOf(setting) })}>${t("Change")}<//></div>` : html`<${HowTo} setting=${setting} />`}</td>
</tr>`;

/** How a setting is changed that can't be changed here: a line for the environment, or one for the file. */
const HowTo = ({ setting: { owner, name, variables, value, secret } }) => {
  const shown = secret || !value ? "…" : value;
  return html`<details><summary><small>${t("How to change it")}</small></summary>
    ${variables.length > 0 && html`<small class="block">${t("In the environment:")}<pre><code>${`${variables[0]}=${shown}`}</code></pre></small>`}
    <small class="block">${t("Or in config.yaml:")}<pre><code>${`${owner}:\n  ${name}: ${shown}`}</code></pre></small>
    <small class="block faint">${t("Then restart the server and its workers.")}</small></details>`;
};

/** Changing one setting, in every process at once; what was set here can be taken back. */
function Change({ setting, onSaved, onClose }) {
  const key = keyOf(setting);
  const found = useResource((signal) => api.pluginSettings({ name: setting.owner, signal }), [setting.owner]);
  const [value, setValue] = useState();
  const save = useAction(async (wanted) => {
    await api.changePluginSettings({ name: setting.owner, body: { [key]: wanted } });
    say(t("Saved"));
    onSaved();
    onClose();
  });
  const action = { ...save, run: () => save.run(value) };
  return html`<${Dialog} title=${t("Change a setting")} onClose=${onClose}>
    <${Loaded} of=${found}>${({ schema, values }) => html`<${Form} action=${action} submit=${t("Save")} onCancel=${onClose} disabled=${value === undefined}>
      ${schema.filter((field) => field.key === key).map((field) => html`<${SettingField} key=${key} field=${field} value=${value ?? values[key]} onChange=${setValue} />`)}
      ${setting.source === "stored" && html`<p><${Button} small busy=${save.busy} onClick=${() => save.run(null)}>${t("Take the change back")}<//></p>`}
    <//>`}<//>
  <//>`;
}
