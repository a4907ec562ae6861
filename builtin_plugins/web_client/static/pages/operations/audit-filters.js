/** What of the audit log is shown: by whom, on what kind of thing, which action; chosen by name. */

import { html, useId } from "../../lib/html.js";
import { useResource } from "../../lib/resource.js";
import { query, setQuery } from "../../lib/router.js";
import { t } from "../../lib/words.js";
import { Button } from "../../parts/basics.js";
import { everybody } from "../../parts/people.js";
import { actionOf, kinds, nameOf } from "./audit-words.js";

const set = (name) => (event) => setQuery({ [name]: event.target.value || null, offset: null });

/** `entries` are those that are shown: their actions are suggested, and they know the names of accounts and targets. */
export function AuditFilters({ entries }) {
  const values = Object.fromEntries(query.value);
  const people = useResource((signal) => everybody(signal));
  const list = useId();
  const actions = new Map(entries.map((entry) => [entry.action, actionOf(entry)]));
  const target = values.target && entries.find((entry) => entry.target_id === values.target);
  return html`<div class="filters">
    <select class="input small" aria-label=${t("By")} value=${values.actor ?? ""} onChange=${set("actor")}>
      <option value="">${t("Everybody")}</option>${among(people.data ?? [], values.actor, entries).map(([id, name]) => html`<option key=${id} value=${String(id)}>${name}</option>`)}
    </select>
    <select class="input small" aria-label=${t("Concerning")} value=${values.type ?? ""} onChange=${set("type")}>
      <option value="">${t("Everything")}</option>${among(kinds(), values.type, []).map(([kind, name]) => html`<option key=${kind} value=${kind}>${name}</option>`)}
    </select>
    <input class="input small" list=${list} aria-label=${t("Action")} placeholder=${t("Action")} value=${values.action ?? ""} onChange=${set("action")} />
    <datalist id=${list}>${[...actions].map(([action, name]) => html`<option key=${action} value=${action}>${name}</option>`)}</datalist>
    ${values.target && html`<${Button} small icon="close" onClick=${() => setQuery({ target: null, offset: null })}>${t("Only about “{name}”", { name: target ? nameOf(target) : values.target })}<//>`}
  </div>`;
}

/** The choices, with the chosen one even if nothing knows its name: an account that is deleted, say. */
function among(known, chosen, entries) {
  if (!chosen || known.some(([id]) => String(id) === chosen)) return known;
  return [...known, [chosen, entries.find((entry) => String(entry.actor_id) === chosen)?.actor_name ?? chosen]];
}
