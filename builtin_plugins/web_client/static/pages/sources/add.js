/** Adding a source: a form made from the schema of its kind, tried before it is saved. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction } from "../../lib/resource.js";
import { t } from "../../lib/words.js";
import { Field, Form } from "../../parts/forms.js";
import { Dialog, say } from "../../parts/layers.js";
import { Filters, Settings, Trial, filtersOf, isComplete, titled, typedOf } from "./forms.js";

const SCHEDULES = { "": "By hand", "@hourly": "Every hour", "@daily": "Every day", "@weekly": "Every week" };

export function AddSource({ base, kinds, onAdded, onClose }) {
  const [kind, setKind] = useState(kinds.find((one) => one.name === "folder") ?? kinds[0]);
  const [settings, setSettings] = useState({});
  const [name, setName] = useState("");
  const [secret, setSecret] = useState("");
  const [schedule, setSchedule] = useState("@hourly");
  const [typed, setTyped] = useState(typedOf());
  const body = { kind: kind.name, settings, secret: (kind.secret && secret) || null, filters: filtersOf(typed) };
  const action = useAction(async () => {
    const made = await api.addSource({ kb_id: base, body: { ...body, name: name.trim() || titled(kind.title), schedule: schedule || null } });
    say(t("The source was added. Its first run has begun."));
    onAdded(made);
  });
  const choose = (value) => {
    setKind(kinds.find((one) => one.name === value));
    setSettings({});
  };
  const isReady = isComplete(kind, settings);
  return html`<${Dialog} title=${t("Add a source")} onClose=${onClose} wide>
    <p class="muted">${kind.guarded === "always" ? t("Only whoever may read something at the source may read it here.") : kind.guarded === "depends" ? t("The settings of the source decide who may read what comes from it.") : t("Everybody who sees this knowledge base will see what comes from the source, whatever its own permissions say.")}</p>
    <${Form} action=${action} submit=${t("Add")} onCancel=${onClose} disabled=${!isReady}>
      <${Field} as="select" label=${t("Kind")} value=${kind.name} onInput=${choose}>${kinds.map((one) => html`<option key=${one.name} value=${one.name}>${titled(one.title)}</option>`)}<//>
      <${Settings} kind=${kind} settings=${settings} onChange=${setSettings} />
      ${kind.secret && html`<${Field} label=${titled(kind.secret)} type="password" value=${secret} onInput=${setSecret} autocomplete="off" optional hint=${t("Kept encrypted, and shown to nobody.")} />`}
      <${Field} label=${t("Name")} value=${name} onInput=${setName} placeholder=${titled(kind.title)} optional />
      <${Field} as="select" label=${t("When it runs")} value=${schedule} onInput=${setSchedule}>${Object.entries(SCHEDULES).map(([value, title]) => html`<option key=${value} value=${value}>${t(title)}</option>`)}<//>
      <${Filters} typed=${typed} onChange=${setTyped} />
      <${Trial} key=${kind.name} base=${base} body=${body} disabled=${!isReady} />
    <//>
  <//>`;
}
