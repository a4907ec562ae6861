/** Bars over time, one for each label, stacked from its series; the same as a table below. */

import { html, useId } from "../lib/html.js";
import { number, t } from "../lib/words.js";

const WIDTH = 600;
const HEIGHT = 120;
const GAP = 0.2; // of a bar's room

/**
 * `labels` are texts, oldest first; `series` are {name, tone, values}, with a value for each label; tones are `good`,
 * `accent`, `warn` and `bad`. `show` writes a value; `most` is the value of a full bar, else the largest.
 */
export function Plot({ title, head, labels, series, show = number, most }) {
  const id = useId();
  const sums = labels.map((_, at) => series.reduce((sum, { values }) => sum + values[at], 0));
  const full = most ?? Math.max(...sums, 1);
  const room = WIDTH / labels.length;
  return html`<figure class="plot-figure" aria-labelledby=${id}>
    <figcaption id=${id}>${title}</figcaption>
    <ul class="plot-legend">${series.map(({ name, tone }) => html`<li key=${name}><span class=${`swatch tone-${tone}`}></span>${name}</li>`)}</ul>
    <div class="plot-area"><span class="faint">${show(full)}</span>
      <svg viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-labelledby=${id}>
        ${labels.map((label, at) => bars(series, at, full).map(({ tone, from, to, name, value }) => html`<rect key=${`${label}-${name}`} class=${`tone-${tone}`} x=${(at + GAP / 2) * room} width=${room * (1 - GAP)} y=${HEIGHT * (1 - to)} height=${HEIGHT * (to - from)}><title>${`${label} · ${name}: ${show(value)}`}</title></rect>`))}
      </svg>
      <div class="plot-ends faint"><span>${labels[0]}</span>${labels.length > 1 && html`<span>${labels.at(-1)}</span>`}</div></div>
    <details><summary>${t("As a table")}</summary><div class="table-box" tabindex="0" role="region" aria-labelledby=${id}><table>
      <thead><tr><th>${head}</th>${series.map(({ name }) => html`<th class="number" key=${name}>${name}</th>`)}</tr></thead>
      <tbody>${labels.map((label, at) => html`<tr key=${label}><td class="nowrap">${label}</td>${series.map(({ name, values }) => html`<td class="number" key=${name}>${show(values[at])}</td>`)}</tr>`)}</tbody></table></div></details>
  </figure>`;
}

/** The pieces of a bar, from the bottom: each from 0 to 1. */
function bars(series, at, full) {
  let from = 0;
  return series
    .map(({ name, tone, values }) => {
      const to = from + values[at] / full;
      const piece = { name, tone, value: values[at], from, to };
      from = to;
      return piece;
    })
    .filter(({ value }) => value > 0);
}
