/** The audit log: who did what, with the state before and after. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { Link, query, setQuery } from "../../lib/router.js";
import { dateTime, number, t } from "../../lib/words.js";
import { Button, Empty, Head, Loaded } from "../../parts/basics.js";
import { Dialog } from "../../parts/layers.js";
import { Json } from "../../parts/json.js";
import { AuditFilters } from "./audit-filters.js";
import { actionOf, kindOf, nameOf, placeOf } from "./audit-words.js";

const AT_ONCE = 50;

export default function Audit() {
  const values = Object.fromEntries(query.value);
  const offset = Number(values.offset) || 0;
  const filters = { action: values.action, actor_id: values.actor, target_type: values.type, target_id: values.target };
  const found = useResource((signal) => api.audit({ query: { ...filters, limit: AT_ONCE, offset }, signal }), [JSON.stringify(values)]);
  const [shown, setShown] = useState(null);
  return html`<div class="page">
    <${Head} title=${t("Audit log")} about=${t("Who changed what: accounts, rights, documents, settings. Nobody can alter this log.")} />
    <${AuditFilters} entries=${found.data?.entries ?? []} />
    <${Loaded} of=${found}>${({ entries, total }) =>
      !entries.length
        ? html`<${Empty} icon="audit" title=${t("No entries")}>${t("Nothing matches these filters, or nothing has happened yet.")}<//>`
        : html`<div class="table-box" tabindex="0" role="region" aria-label=${t("Audit log")}><table>
            <thead><tr><th>${t("When")}</th><th>${t("Action")}</th><th>${t("By")}</th><th>${t("Concerning")}</th><th><span class="hidden">${t("Details")}</span></th></tr></thead>
            <tbody>${entries.map(
              (entry) => html`<tr key=${entry.id}>
                <td class="nowrap">${dateTime(entry.created_at)}</td><td>${actionOf(entry)}</td>
                <td class="nowrap"><${Actor} entry=${entry} /></td>
                <td class="anywhere"><${Target} entry=${entry} /></td>
                <td class="right"><${Button} small onClick=${() => setShown(entry)}>${t("Details")}<//></td></tr>`,
            )}</tbody></table></div>
            <div class="row center">
              <${Button} icon="back" aria-label=${t("Newer")} disabled=${offset === 0} onClick=${() => setQuery({ offset: Math.max(0, offset - AT_ONCE) || null })} />
              <span class="muted">${t("{from} to {to} of {total}", { from: number(offset + 1), to: number(offset + entries.length), total: number(total) })}</span>
              <${Button} icon="next" aria-label=${t("Older")} disabled=${offset + AT_ONCE >= total} onClick=${() => setQuery({ offset: offset + AT_ONCE })} />
            </div>`
    }<//>
    ${shown && html`<${Entry} entry=${shown} onClose=${() => setShown(null)} />`}
  </div>`;
}

const nameOfActor = ({ actor_id: id, actor_name: name }) => (id === null ? t("the operator") : (name ?? t("account {id}", { id })));

/** Who did it; a click shows what else they did. */
const Actor = ({ entry }) => (entry.actor_id === null ? nameOfActor(entry) : html`<${Link} to=${`/audit?actor=${entry.actor_id}`}>${nameOfActor(entry)}<//>`);

function Target({ entry }) {
  const place = placeOf(entry);
  return html`<span class="muted">${kindOf(entry)}</span> ${place ? html`<${Link} to=${place}>${nameOf(entry)}<//>` : nameOf(entry)}`;
}

const Entry = ({ entry, onClose }) => html`<${Dialog} title=${actionOf(entry)} onClose=${onClose} wide>
  <dl class="facts">
    <dt>${t("When")}</dt><dd>${dateTime(entry.created_at)}</dd>
    <dt>${t("By")}</dt><dd>${nameOfActor(entry)}</dd>
    <dt>${t("Concerning")}</dt><dd><${Target} entry=${entry} /> <span class="faint">${entry.target_id}</span>
      ${entry.target_id && html`<${Link} class="block" to=${`/audit?type=${encodeURIComponent(entry.target_type)}&target=${encodeURIComponent(entry.target_id)}`} onClick=${onClose}>${t("Everything about it")}<//>`}</dd>
    <dt>${t("In the API")}</dt><dd><code>${entry.action}</code></dd>
    ${entry.ip_address && html`<dt>${t("From")}</dt><dd>${entry.ip_address}</dd>`}
    ${entry.user_agent && html`<dt>${t("Program")}</dt><dd>${entry.user_agent}</dd>`}
  </dl>
  <div class="halves">
    <div class="stack close"><h3>${t("Before")}</h3><${Json} label=${t("Before")} value=${entry.before_state ?? t("nothing")} /></div>
    <div class="stack close"><h3>${t("After")}</h3><${Json} label=${t("After")} value=${entry.after_state ?? t("nothing")} /></div>
  </div>
<//>`;
