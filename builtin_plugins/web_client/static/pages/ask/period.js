/** The period that a question was answered for, which one click removes. */

import { html } from "../../lib/html.js";
import { day, t } from "../../lib/words.js";
import { Button } from "../../parts/basics.js";
import { answering, askAgain } from "./conversation.js";

export function Period({ turn }) {
  const period = turn.state === "done" && turn.done?.method_details.period;
  if (!period) return null;
  const label = labelOf(period);
  if (!period.applied) return html`<p class="faint">${t("{documents}: no answer there, so all documents were searched.", { documents: label })}</p>`;
  return html`<div class="row"><${Button} small icon="close" class="pressed" aria-label=${t("Remove the period {name}", { name: label })} disabled=${answering.value}
    onClick=${() => askAgain(turn, { use_period: false })}><span class="clip">${label}</span><//></div>`;
}

function labelOf({ kind, newest, first, before }) {
  if (kind === "current") return newest ? t("The newest documents") : t("Documents that apply today");
  if (kind === "since") return t("Documents since {day}", { day: shown(first) });
  if (kind === "before") return t("Documents before {day}", { day: shown(before) });
  return t("Documents from {period}", { period: spanOf(first, before) });
}

const shown = (date) => day(`${date}T00:00:00`);

/** A year alone if it is whole, else its first and last day. */
function spanOf(first, before) {
  if (first.endsWith("-01-01") && before === `${Number(first.slice(0, 4)) + 1}-01-01`) return first.slice(0, 4);
  const last = new Date(`${before}T00:00:00Z`);
  last.setUTCDate(last.getUTCDate() - 1);
  const end = last.toISOString().slice(0, 10);
  return end === first ? shown(first) : `${shown(first)} – ${shown(end)}`;
}
