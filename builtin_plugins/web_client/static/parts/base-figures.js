/** How often knowledge bases were asked and what they take up, for those who may change them. */

import { html } from "../lib/html.js";
import { api } from "../lib/api.js";
import { useResource } from "../lib/resource.js";
import { bytes, number, t } from "../lib/words.js";
import { Loaded } from "./basics.js";
import { Plot } from "./plot.js";
import { LATEST, labelsOf, latestDays, QuestionDays } from "./question-days.js";

/** Of one knowledge base, or of all that the person may change. */
export function BaseFigures({ base }) {
  const query = base ? { days: LATEST, knowledge_base_id: base } : { days: LATEST };
  const found = useResource((signal) => api.questionFigures({ query, signal }), [base]);
  return html`<${Loaded} of=${found}>${({ items, storage }) => html`${items.length
    ? html`<${QuestionDays} days=${items.map((one) => ({ ...one, answered: one.questions - one.refused }))} />
      <p class="faint">${t("Counted without what was asked, and by whom. A question to several knowledge bases counts in each.")}</p>`
    : html`<p class="muted">${t("No questions in the last 30 days.")}</p>`}
    <${StorageDays} records=${storage} />`}<//>`;
}

/** A day without a record is like the one before it; `records` are {day, size_bytes, files}, the latest first. */
function StorageDays({ records }) {
  if (!records.some((one) => one.size_bytes)) return null;
  const days = latestDays();
  const plot = (title, name, key, show) => html`<${Plot} title=${title} head=${t("Day")} labels=${labelsOf(days)} show=${show}
    series=${[{ name, tone: "accent", values: days.map((day) => records.find((one) => one.day <= day)?.[key] ?? 0) }]} />`;
  return html`${plot(t("Storage by day"), t("Files"), "size_bytes", bytes)}${plot(t("Files by day"), t("Files"), "files", number)}`;
}
