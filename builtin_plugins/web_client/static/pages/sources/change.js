/** Changing a source: its name, settings, credential, filters and schedule, tried before they are saved. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction } from "../../lib/resource.js";
import { t } from "../../lib/words.js";
import { Field, Form } from "../../parts/forms.js";
import { Dialog, say } from "../../parts/layers.js";
import { Filters, Settings, Trial, filtersOf, isComplete, typedOf } from "./forms.js";

export function ChangeSource({ base, source, kind, onSaved, onClose }) {
  const [name, setName] = useState(source.name);
  const [settings, setSettings] = useState(source.settings);
  const [schedule, setSchedule] = useState(source.schedule ?? "");
  const [typed, setTyped] = useState(typedOf(source.filters));
  const [secret, setSecret] = useState("");
  const given = { filters: filtersOf(typed), ...(kind && { settings }), ...(secret && { secret }) };
  const action = useAction(async () => {
    onSaved(await api.changeSource({ source_id: source.id, body: { ...given, name, schedule: schedule.trim() || null } }));
    onClose();
    say(t("Saved"));
  });
  const isReady = name.trim() && (!kind || isComplete(kind, settings));
  return html`<${Dialog} title=${source.name} onClose=${onClose} wide>
    <${Form} action=${action} submit=${t("Save")} onCancel=${onClose} disabled=${!isReady}>
      <${Field} label=${t("Name")} value=${name} onInput=${setName} required autofocus />
      ${kind && html`<${Settings} kind=${kind} settings=${settings} onChange=${setSettings} />`}
      ${kind?.secret && html`<${Field} label=${t("New credential")} type="password" value=${secret} onInput=${setSecret} autocomplete="off" optional hint=${t("Kept encrypted, and shown to nobody.")} />`}
      <${Field} label=${t("When it runs")} value=${schedule} onInput=${setSchedule} optional hint=${t("@hourly, @daily, @weekly, or five cron fields; by hand when empty.")} />
      <${Filters} typed=${typed} onChange=${setTyped} />
      ${kind && html`<${Trial} base=${base} body=${{ ...given, kind: kind.name, source_id: source.id }} disabled=${!isReady} />`}
    <//>
  <//>`;
}
