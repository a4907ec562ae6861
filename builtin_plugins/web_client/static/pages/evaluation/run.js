/** A run: what was measured in each way of asking, what `auto` makes of it, and how it compares with another run. */

import { html, useState } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { useAction, usePolling, useResource } from "../../lib/resource.js";
import { query, setQuery } from "../../lib/router.js";
import { dateTime, number, t } from "../../lib/words.js";
import { Badge, Button, Failure, Head, Loaded, Meter, Notice } from "../../parts/basics.js";
import { Field } from "../../parts/forms.js";
import { saveBlob } from "../../parts/save.js";
import { Bars } from "./bars.js";
import { Comparison } from "./comparison.js";
import { figure, MEASURES, titleOf } from "./measures.js";

const PAUSE = 1_500;

async function load(id, signal) {
  const run = await api.evaluationRun({ run_id: id, signal });
  const others = await everything(api.evaluationRuns, { query: { knowledge_base_id: run.knowledge_base_id }, signal });
  return { run, others: others.filter((other) => other.status === "done") };
}

export default function Run({ id }) {
  const found = useResource((signal) => load(id, signal), [id]);
  usePolling(found.reload, PAUSE, found.data?.run.status === "running");
  const files = useAction(async (fetchFile, name) => saveBlob(await (await fetchFile({ run_id: id })).blob(), name));
  const cancel = useAction(async (job) => {
    await api.cancelJob({ job_id: job });
    await found.reload();
  });
  return html`<div class="page">
    <${Loaded} of=${found} back=${{ to: "/evaluation", title: t("Evaluation") }}>${({ run, others }) => html`
      <${Head} title=${t("Run of {time}", { time: dateTime(run.created_at) })} back=${{ to: `/evaluation?base=${run.knowledge_base_id}`, title: t("Evaluation") }}>
        ${run.status === "running" && run.job_id && html`<${Button} busy=${cancel.busy} onClick=${() => cancel.run(run.job_id)}>${t("Cancel")}<//>`}
        ${run.status === "done" && html`<${Button} icon="download" onClick=${() => files.run(api.evaluationTable, "run.md")}>${t("Table")}<//><${Button} icon="download" onClick=${() => files.run(api.evaluationPlot, "run.svg")}>${t("Plot")}<//>`}
      <//>
      <${Failure} error=${files.error ?? cancel.error} />
      ${run.status === "running" && html`<div class="stack close" role="status"><${Meter} value=${run.done} max=${run.total} label=${t("Progress")} /><p class="muted">${t("{done} of {total} answers", { done: number(run.done), total: number(run.total) })}</p></div>`}
      ${run.error && html`<${Notice} tone="bad" title=${t("The run failed")}>${run.error}<//>`}
      ${run.summaries.length > 0 && html`<${Summaries} run=${run} />`}
      ${run.status === "done" && html`<${Bars} summaries=${run.summaries} />`}
      ${Object.keys(run.choices ?? {}).length > 0 && html`<${Choices} choices=${run.choices} />`}
      ${run.status === "done" && html`<${Against} run=${run} others=${others} /><${Worst} run=${run} />`}
    `}<//>
  </div>`;
}

function Summaries({ run }) {
  const names = MEASURES.filter((name) => run.summaries.some((one) => one.measures[name]));
  return html`<div class="table-box" tabindex="0" role="region" aria-label=${t("What was measured")}><table>
    <thead><tr><th>${t("Configuration")}</th>${names.map((name) => html`<th class="number" key=${name}>${titleOf(name)}</th>`)}</tr></thead>
    <tbody>${run.summaries.map((one) => html`<tr key=${one.label}><td class="nowrap"><span class="name">${one.label}</span></td>
      ${names.map((name) => html`<td class="number" key=${name}><${Mean} name=${name} of=${one.measures[name]} /></td>`)}</tr>`)}</tbody></table></div>`;
}

const Mean = ({ name, of }) =>
  of ? html`${figure(name, of.mean)}<small class="faint block">${figure(name, of.low)} – ${figure(name, of.high)}</small>` : "–";

const KINDS = { simple: "Simple questions", moderate: "Moderate questions", complex: "Complex questions", every: "All questions" };

function Choices({ choices }) {
  return html`<section class="stack close"><h2>${t("What “auto” does from now on")}</h2>
    <dl class="facts">${Object.entries(choices).map(([kind, choice]) => html`<dt key=${kind}>${t(KINDS[kind] ?? kind)}</dt><dd class="row"><${Badge} tone="accent">${choice.taken}<//>${choice.taken !== choice.best && html`<span class="muted">${t("cheaper than “{best}”, and not clearly worse", { best: choice.best })}</span>`}</dd>`)}</dl></section>`;
}

function Against({ run, others }) {
  const other = query.value.get("with") ?? "";
  return html`<section class="stack"><h2>${t("Compare")}</h2>
    <div class="filters">
      <${Field} as="select" label=${t("With the run of")} value=${other} onInput=${(value) => setQuery({ with: value || null })}>
        <option value="">${t("none")}</option>
        ${others.map((one) => html`<option key=${one.id} value=${one.id}>${dateTime(one.created_at)}${one.id === run.id ? ` (${t("this run")})` : ""}</option>`)}
      <//>
    </div>
    ${other && html`<${Comparison} run=${run} other=${other} />`}
  </section>`;
}

function Worst({ run }) {
  const [position, setPosition] = useState(0);
  const found = useResource((signal) => api.evaluationResults({ run_id: run.id, query: { configuration: position, limit: 20 }, signal }), [run.id, position]);
  return html`<section class="stack"><h2>${t("Worst-answered questions")}</h2>
    ${run.summaries.length > 1 && html`<div class="filters"><${Field} as="select" label=${t("Configuration")} value=${String(position)} onInput=${(value) => setPosition(Number(value))}>
      ${run.summaries.map((one, index) => html`<option key=${one.label} value=${String(index)}>${one.label}</option>`)}<//></div>`}
    <${Loaded} of=${found}>${({ items }) => html`<div class="table-box" tabindex="0" role="region" aria-label=${t("Worst-answered questions")}><table>
      <thead><tr><th>${t("Question")}</th>${MEASURES.slice(0, 5).map((name) => html`<th class="number" key=${name}>${titleOf(name)}</th>`)}</tr></thead>
      <tbody>${items.map((item) => html`<tr key=${item.question_id}><td>${item.question}</td>${MEASURES.slice(0, 5).map((name) => html`<td class="number" key=${name}>${figure(name, item.values[name])}</td>`)}</tr>`)}</tbody></table></div>`}<//>
  </section>`;
}
