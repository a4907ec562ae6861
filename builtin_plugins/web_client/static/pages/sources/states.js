/** States of sources, their runs and items, in words. */

import { html } from "../../lib/html.js";
import { ago, dateTime, number, t } from "../../lib/words.js";
import { Badge, Spinner } from "../../parts/basics.js";

const WORDS = {
  queued: "Waiting",
  running: "Running",
  waiting: "Waiting for the source",
  needs_confirmation: "Waits for you",
  done: "In step",
  failed: "Failed",
  credential_refused: "Credential refused",
  cancelled: "Cancelled",
  superseded: "Replaced by another run",
};
const TONES = { done: "good", failed: "bad", credential_refused: "bad", needs_confirmation: "warn", running: "accent", queued: "accent", waiting: "accent" };
const ACTIVE = ["queued", "running"];

export const isActive = (run) => ACTIVE.includes(run?.state);

export function RunState({ run }) {
  if (!run) return html`<${Badge}>${t("New")}<//>`;
  return html`<${Badge} tone=${TONES[run.state] ?? "neutral"}>${isActive(run) && html`<${Spinner} />`}${run.is_dry && run.state === "done" ? t("Rehearsed") : t(WORDS[run.state])}<//>`;
}

const FIGURES = { found: "{n} found", added: "{n} new", changed: "{n} changed", moved: "{n} moved", gone: "{n} gone", skipped: "{n} left out", failed: "{n} failed" };

const UNDECIDED = ["needs_confirmation", "superseded"];

/** What a run found, in a line; nothing is said of what did not happen. */
export const figuresOf = (run) =>
  Object.entries({ ...FIGURES, ...(UNDECIDED.includes(run.state) && { gone: "{n} missing" }) })
    .filter(([name]) => name === "found" || run[name] > 0)
    .map(([name, text]) => t(text, { n: number(run[name]) }))
    .join(" · ");

export const TRIGGERS = { hand: "by hand", schedule: "by the clock", push: "by a push" };

/** When a source runs next. */
export const nextOf = (source) => (source.next_at ? t("Next run: {when}", { when: dateTime(source.next_at) }) : t("Runs by hand or by a push"));

export const lastOf = (run) => (run ? ago(run.finished_at ?? run.started_at) : "");
