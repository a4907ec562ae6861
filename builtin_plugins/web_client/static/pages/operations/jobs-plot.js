/** The background jobs of the last day, by the hour in which they were queued. */

import { html } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { hourOf, t } from "../../lib/words.js";
import { Plot } from "../../parts/plot.js";

const HOUR = 3_600_000; // ms
const HOURS = 24;
const MOST = 500;
const STATES = [
  { states: ["done"], title: "Done", tone: "good" },
  { states: ["queued", "running"], title: "Waiting or running", tone: "accent" },
  { states: ["failed"], title: "Failed", tone: "bad" },
  { states: ["cancelled"], title: "Cancelled", tone: "warn" },
];

export function JobsPlot() {
  const found = useResource((signal) => api.jobs({ query: { limit: MOST }, signal }));
  if (!found.data?.items.length) return null; // the list says the same, or why not
  const { items, total } = found.data;
  const last = Math.floor(Date.now() / HOUR);
  const hours = Array.from({ length: HOURS }, (_, at) => last - HOURS + 1 + at);
  const of = (job) => Math.floor(Date.parse(job.created_at) / HOUR);
  const count = (hour, states) => items.filter((job) => of(job) === hour && states.includes(job.status)).length;
  const series = STATES.map(({ states, title, tone }) => ({ name: t(title), tone, values: hours.map((hour) => count(hour, states)) })).filter(({ values }) => values.some(Boolean));
  if (!series.length) return null;
  const isCut = total > items.length && of(items.at(-1)) >= hours[0];
  const about = isCut ? t("The latest {n} jobs, by the hour in which they were queued", { n: items.length }) : t("Jobs of the last 24 hours, by the hour in which they were queued");
  return html`<${Plot} title=${about} head=${t("Hour")} labels=${hours.map((hour) => hourOf(hour * HOUR))} series=${series} />`;
}
