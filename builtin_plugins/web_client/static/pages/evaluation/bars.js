/** The measures between 0 and 1 of each way of asking, as the file “Plot” has them. */

import { html } from "../../lib/html.js";
import { t } from "../../lib/words.js";
import { figure, titleOf } from "./measures.js";

const SHOWN = ["quality", "ndcg@10", "recall@5", "contains"];

export function Bars({ summaries }) {
  return html`<figure class="bars" role="img" aria-label=${t("The measures as bars, with their intervals")}>
    ${summaries.map(({ label, measures }) => html`<div key=${label} class="stack close"><strong class="anywhere">${label}</strong>
      ${SHOWN.filter((name) => measures[name]).map((name) => html`<${Bar} key=${name} name=${name} of=${measures[name]} />`)}</div>`)}
  </figure>`;
}

const Bar = ({ name, of }) => html`<div class="bar"><span>${titleOf(name)}</span>
  <svg viewBox="0 0 1 1" preserveAspectRatio="none"><rect width="1" height="1" class="bar-room" /><rect width=${of.mean} height="1" class="tone-accent" />
    <line x1=${of.low} x2=${of.high} y1="0.5" y2="0.5" vector-effect="non-scaling-stroke" /></svg>
  <span class="number">${figure(name, of.mean)}</span></div>`;
