/** How good the latest runs of a set of questions were, one after the other. */

import { html } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { dateTime, t } from "../../lib/words.js";
import { Plot } from "../../parts/plot.js";
import { COSTS, MEASURES, figure, titleOf } from "./measures.js";

const MOST = 12;

/** `runs` come newest first; those of the set that was run last are compared. */
export function Progress({ runs, names }) {
  const [newest] = runs.filter((run) => run.status === "done");
  const same = runs.filter((run) => run.status === "done" && run.set_id === newest?.set_id).slice(0, MOST).toReversed();
  const found = useResource((signal) => Promise.all(same.map((run) => api.evaluationRun({ run_id: run.id, signal }))), [same.map((run) => run.id).join()]);
  if (same.length < 2 || !found.data || found.data.length < 2) return null;
  const measure = MEASURES.find((name) => !COSTS.has(name) && found.data.every((run) => run.summaries.some((one) => one.measures[name])));
  if (!measure) return null;
  const values = found.data.map((run) => Math.max(...run.summaries.map((one) => one.measures[measure]?.mean ?? 0)));
  const title = t("{measure} of the latest runs of “{name}”, in the best configuration of each", { measure: titleOf(measure), name: names[newest.set_id] ?? "" });
  return html`<${Plot} title=${title} head=${t("Started")} labels=${found.data.map((run) => dateTime(run.created_at))} series=${[{ name: titleOf(measure), tone: "accent", values }]} show=${(value) => figure(measure, value)} most=${1} />`;
}
