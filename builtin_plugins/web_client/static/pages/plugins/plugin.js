/** One plugin: its state, its settings, switching it on and off. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction, useResource } from "../../lib/resource.js";
import { isAdmin } from "../../lib/session.js";
import { dateTime, t } from "../../lib/words.js";
import { Button, Failure, Head, Loaded, Notice } from "../../parts/basics.js";
import { Form } from "../../parts/forms.js";
import { say } from "../../parts/layers.js";
import { SettingField } from "../../parts/setting-field.js";
import { PluginState } from "./page.js";

export default function Plugin({ name }) {
  const found = useResource((signal) => api.plugin({ name, signal }), [name]);
  const turn = useAction(async (on) => {
    const { message } = await (on ? api.enablePlugin({ name }) : api.disablePlugin({ name }));
    say(message);
    found.reload();
  });
  return html`<div class="page narrow">
    <${Loaded} of=${found} back=${{ to: "/plugins", title: t("Plugins") }}>${(plugin) => html`
      <${Head} title=${plugin.name} about=${plugin.description} back=${{ to: "/plugins", title: t("Plugins") }}>
        ${isAdmin.value && (plugin.enabled ? html`<${Button} busy=${turn.busy} onClick=${() => turn.run(false)}>${t("Turn off")}<//>` : html`<${Button} kind="primary" busy=${turn.busy} onClick=${() => turn.run(true)}>${t("Turn on")}<//>`)}
      <//>
      <${Failure} error=${turn.error} />
      ${plugin.reason && html`<${Notice} tone="bad" title=${t("Out of service")}>${plugin.reason}<//>`}
      <dl class="facts">
        <dt>${t("State")}</dt><dd><${PluginState} of=${plugin} /></dd>
        <dt>${t("Version")}</dt><dd>${plugin.version}</dd>
        <dt>${t("Author")}</dt><dd>${plugin.author}</dd>
        ${plugin.dependencies.length > 0 && html`<dt>${t("Needs")}</dt><dd>${plugin.dependencies.join(", ")}</dd>`}
        <dt>${t("Registered")}</dt><dd>${dateTime(plugin.registered_at)}</dd>
      </dl>
      ${isAdmin.value && plugin.status === "enabled" && html`<${Settings} name=${name} />`}
    `}<//>
  </div>`;
}

function Settings({ name }) {
  const found = useResource((signal) => api.pluginSettings({ name, signal }), [name]);
  if (found.error?.status === 403 || found.data?.configurable === false) return null;
  return html`<section class="panel"><h2>${t("Settings")}</h2><${Loaded} of=${found}>${(config) => html`<${SettingsForm} name=${name} config=${config} onSaved=${found.reload} />`}<//></section>`;
}

/** A form as the plugin describes it. Secrets are never shown; what is left empty stays as it is. */
function SettingsForm({ name, config, onSaved }) {
  const [changes, setChanges] = useState({});
  const action = useAction(async () => {
    await api.changePluginSettings({ name, body: changes });
    setChanges({});
    say(t("Saved"));
    onSaved();
  });
  const set = (key, value) => setChanges({ ...changes, [key]: value });
  return html`<${Form} action=${action} submit=${t("Save")} disabled=${!Object.keys(changes).length}>
    ${config.schema.map((field) => html`<${SettingField} key=${field.key} field=${field} value=${changes[field.key] ?? config.values[field.key]} onChange=${(value) => set(field.key, value)} />`)}
  <//>`;
}
