/** Questions, refusals and ratings on each of the last days. */

import { html } from "../lib/html.js";
import { day, t } from "../lib/words.js";
import { Plot } from "./plot.js";

export const LATEST = 30; // days
const DAY = 86_400_000; // ms

/** The last days, the latest last, as the API writes them. */
export const latestDays = () => Array.from({ length: LATEST }, (_, at) => new Date(Date.now() - (LATEST - 1 - at) * DAY).toISOString().slice(0, 10));
/** The same as people write them. */
export const labelsOf = (days) => days.map((one) => day(`${one}T12:00:00`));

/** What happened on each day, also on those without a question; `days` are {day, answered, refused, failed?, up, down}. */
export function QuestionDays({ days }) {
  const known = new Map(days.map((one) => [one.day, one]));
  const all = latestDays();
  const series = (...columns) => columns.map(([name, key, tone]) => ({ name, tone, values: all.map((one) => known.get(one)?.[key] ?? 0) }));
  const labels = labelsOf(all);
  const counted = [[t("Answered"), "answered", "good"], [t("Not in the documents"), "refused", "warn"]];
  if (days.some((one) => "failed" in one)) counted.push([t("Failed"), "failed", "bad"]);
  return html`<${Plot} title=${t("Questions per day")} head=${t("Day")} labels=${labels} series=${series(...counted)} />
    ${days.some(({ up, down }) => up + down) && html`<${Plot} title=${t("Ratings per day")} head=${t("Day")} labels=${labels} series=${series([t("Liked"), "up", "good"], [t("Disliked"), "down", "bad"])} />`}`;
}
