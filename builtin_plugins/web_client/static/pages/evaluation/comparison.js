/** Two runs, side by side: differences with their significance, and the questions that got worse. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { number, t } from "../../lib/words.js";
import { Badge, Loaded } from "../../parts/basics.js";
import { Field } from "../../parts/forms.js";
import { COSTS, figure, MEASURES, titleOf } from "./measures.js";

const SIGNIFICANT = 0.05;

async function load({ run, other, here, there }, signal) {
  const detail = await api.evaluationRun({ run_id: other, signal });
  const place = Math.min(there, detail.summaries.length - 1);
  const comparison = await api.compareRuns({ run_id: run.id, query: { with: other, configuration: here, other_configuration: place }, signal });
  return { detail, comparison };
}

export function Comparison({ run, other }) {
  const [here, setHere] = useState(0);
  const [there, setThere] = useState(other === run.id ? 1 : 0);
  const found = useResource((signal) => load({ run, other, here, there }, signal), [run.id, other, here, there]);
  const choose = (label, summaries, value, set) => html`<${Field} as="select" label=${label} value=${String(value)} onInput=${(text) => set(Number(text))}>
    ${summaries.map((one, index) => html`<option key=${one.label} value=${String(index)}>${one.label}</option>`)}<//>`;
  return html`<${Loaded} of=${found}>${({ detail, comparison }) => html`
    <div class="filters">${choose(t("This run"), run.summaries, here, setHere)}${choose(t("The other run"), detail.summaries, there, setThere)}</div>
    <${Differences} of=${comparison.differences} />
    ${comparison.worse.length ? html`<${Worse} questions=${comparison.worse} />` : html`<p class="muted">${t("No question got worse.")}</p>`}
  `}<//>`;
}

function Differences({ of }) {
  const names = MEASURES.filter((name) => of[name]);
  return html`<div class="table-box" tabindex="0" role="region" aria-label=${t("Differences")}><table>
    <thead><tr><th>${t("Measure")}</th><th class="number">${t("Difference")}</th><th class="number">${t("95 % interval")}</th><th class="number">p</th><th></th></tr></thead>
    <tbody>${names.map((name) => html`<tr key=${name}><td>${titleOf(name)}</td><td class="number">${signed(name, of[name].difference)}</td>
      <td class="number">${figure(name, of[name].low)} – ${figure(name, of[name].high)}</td><td class="number">${number(of[name].p, { maximumFractionDigits: 3 })}</td>
      <td><${Verdict} name=${name} of=${of[name]} /></td></tr>`)}</tbody></table></div>`;
}

const signed = (name, value) => `${value > 0 ? "+" : ""}${figure(name, value)}`;

function Verdict({ name, of }) {
  if (of.p >= SIGNIFICANT || of.difference === 0) return html`<span class="faint">${t("no clear difference")}</span>`;
  const better = of.difference > 0 !== COSTS.has(name);
  return better ? html`<${Badge} tone="good">${t("better")}<//>` : html`<${Badge} tone="bad">${t("worse")}<//>`;
}

function Worse({ questions }) {
  return html`<h3>${t("Questions that got worse")}</h3>
    <div class="table-box" tabindex="0" role="region" aria-label=${t("Questions that got worse")}><table>
    <thead><tr><th>${t("Question")}</th><th class="number">${t("Before")}</th><th class="number">${t("Now")}</th></tr></thead>
    <tbody>${questions.map((one) => html`<tr key=${one.question}><td>${one.question}</td><td class="number">${figure("quality", one.before.quality)}</td><td class="number">${figure("quality", one.now.quality)}</td></tr>`)}</tbody></table></div>`;
}
