/** Evaluation: how well a knowledge base answers the user's own questions. */

import { html, useState } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { useAction, usePolling, useResource } from "../../lib/resource.js";
import { Link, go, query, setQuery } from "../../lib/router.js";
import { owns } from "../../lib/session.js";
import { ago, number, plural, t } from "../../lib/words.js";
import { Badge, Button, Empty, Head, Loaded, Meter } from "../../parts/basics.js";
import { Choice, Field, Form } from "../../parts/forms.js";
import { Confirm, Dialog, Menu, say } from "../../parts/layers.js";
import { PickBase, baseIn } from "../../parts/pick-base.js";
import { Progress } from "./progress.js";
import { StartRun } from "./start.js";

const PAUSE = 2_000;

export default function Evaluation() {
  const bases = useResource((signal) => everything(api.knowledgeBases, { signal }));
  return html`<div class="page">
    <${Loaded} of=${bases}>${(list) => (list.length ? html`<${Bases} list=${list} />` : html`
      <${Head} title=${t("Evaluation")} about=${ABOUT()} />
      <${Empty} icon="evaluation" title=${t("Nothing to evaluate yet")} action=${html`<${Button} kind="primary" to="/documents">${t("Add documents")}<//>`}>${t("First make a knowledge base and add documents to it.")}<//>`)}<//>
  </div>`;
}

const ABOUT = () => t("How well your documents are found and your questions answered, measured with questions of your own.");

async function load(base, signal) {
  const parameters = { query: { knowledge_base_id: base }, signal };
  const [sets, runs] = await Promise.all([everything(api.evaluationSets, parameters), everything(api.evaluationRuns, parameters)]);
  return { sets, runs };
}

function Bases({ list }) {
  const base = baseIn(list);
  const mine = base && owns(base);
  const add = mine && html`<${Button} kind="primary" icon="plus" onClick=${() => setQuery({ new: 1 })}>${t("New set of questions")}<//>`;
  return html`
    <${Head} title=${t("Evaluation")} about=${ABOUT()}>${add}<//>
    <${PickBase} list=${list} base=${base} onPick=${(id) => setQuery({ base: id })} />
    ${base && html`<${Base} key=${base.id} base=${base} mine=${mine} add=${add} />`}`;
}

function Base({ base, mine, add }) {
  const found = useResource((signal) => load(base.id, signal), [base.id]);
  const [starting, setStarting] = useState(null);
  const creating = query.value.get("new") === "1";
  usePolling(found.reload, PAUSE, found.data?.runs.some((run) => run.status === "running") ?? false);
  return html`
    <${Loaded} of=${found}>${({ sets, runs }) => html`
      ${sets.length ? html`<div class="cards">${sets.map((set) => html`<${SetTile} key=${set.id} set=${set} mine=${mine} onRun=${() => setStarting(set)} onChanged=${found.reload} />`)}</div>`
        : html`<${Empty} icon="evaluation" title=${t("No questions yet")} action=${add}>${mine ? t("Write questions and say what should be found, upload a file, or have questions made from the documents’ headings and definitions.") : t("Only the owner of a knowledge base can evaluate it.")}<//>`}
      ${runs.length > 0 && html`<${Runs} runs=${runs} sets=${sets} />`}
    `}<//>
    ${creating && mine && html`<${NewSet} base=${base} onClose=${() => setQuery({ new: null })} />`}
    ${starting && html`<${StartRun} set=${starting} onClose=${() => setStarting(null)} />`}`;
}

function SetTile({ set, mine, onRun, onChanged }) {
  const [deleting, setDeleting] = useState(false);
  return html`<article class="tile">
    <div class="row tight"><h2 class="grow"><${Link} to=${`/evaluation/sets/${set.id}`}>${set.name}<//></h2>
      <${Menu} label=${t("More on {name}", { name: set.name })} items=${mine && [{ title: t("Delete"), icon: "trash", danger: true, onSelect: () => setDeleting(true) }]} /></div>
    <p>${plural(set.question_count, "One question", "{n} questions")}</p>
    <div class="tile-foot"><span>${ago(set.created_at)}</span><span class="grow"></span>
      ${mine && html`<${Button} small icon="next" disabled=${!set.question_count} onClick=${onRun}>${t("Run")}<//>`}</div>
    ${deleting && html`<${Confirm} title=${t("Delete “{name}”?", { name: set.name })} confirm=${t("Delete")} onClose=${() => setDeleting(false)}
      onConfirm=${async () => { await api.deleteEvaluationSet({ set_id: set.id }); onChanged(); }}><p>${t("Its questions and what was measured with them are removed.")}</p><//>`}
  </article>`;
}

const TONES = { running: "accent", done: "good", failed: "bad" };
const WORDS = { running: "Running", done: "Done", failed: "Failed" };

function Runs({ runs, sets }) {
  const names = Object.fromEntries(sets.map((set) => [set.id, set.name]));
  return html`<section class="stack" aria-labelledby="runs"><h2 id="runs">${t("Runs")}</h2>
    <${Progress} runs=${runs} names=${names} />
    <div class="table-box" tabindex="0" role="region" aria-labelledby="runs"><table>
      <thead><tr><th>${t("Started")}</th><th>${t("Questions")}</th><th>${t("State")}</th><th class="wide-only">${t("Progress")}</th></tr></thead>
      <tbody>${runs.map((run) => html`<tr key=${run.id}>
        <td class="nowrap"><${Link} class="name" to=${`/evaluation/runs/${run.id}`}>${ago(run.created_at)}<//></td>
        <td>${names[run.set_id] ?? ""}</td>
        <td><${Badge} tone=${TONES[run.status]}>${t(WORDS[run.status])}<//>${run.error && html`<small class="bad block">${run.error}</small>`}</td>
        <td class="wide-only">${run.status === "running" ? html`<${Meter} value=${run.done} max=${run.total} label=${t("Progress")} />` : html`<span class="muted">${t("{done} of {total} answers", { done: number(run.done), total: number(run.total) })}</span>`}</td>
      </tr>`)}</tbody></table></div>
  </section>`;
}

const MADE = [
  { value: "generate", title: "From the documents", about: "Headings, definitions and figures become questions; you can remove those that you don’t want." },
  { value: "file", title: "From a file", about: "JSONL or CSV with a question on each line." },
];

function NewSet({ base, onClose }) {
  const [name, setName] = useState("");
  const [how, setHow] = useState("generate");
  const [file, setFile] = useState(null);
  const action = useAction(async () => {
    const made = await api.createEvaluationSet({ body: { knowledge_base_id: base.id, name } });
    try {
      if (how === "file") await api.uploadQuestions({ set_id: made.id, body: questionsOf(file) });
      else sayMade(await api.generateQuestions({ set_id: made.id, body: {} }));
    } catch (error) {
      await api.deleteEvaluationSet({ set_id: made.id });
      throw error;
    }
    setQuery({ new: null });
    go(`/evaluation/sets/${made.id}`);
  });
  return html`<${Dialog} title=${t("New set of questions")} onClose=${onClose}>
    <${Form} action=${action} submit=${t("Create")} onCancel=${onClose} disabled=${!name.trim() || (how === "file" && !file)}>
      <${Field} label=${t("Name")} value=${name} onInput=${setName} error=${action.error?.fields?.name} required autofocus />
      <${Choice} legend=${t("Where do the questions come from?")} value=${how} onChange=${setHow} options=${MADE.map((one) => ({ ...one, title: t(one.title), about: t(one.about) }))} />
      ${how === "file" && html`<${Field} label=${t("File")} type="file" accept=".jsonl,.json,.csv" onChange=${(event) => setFile(event.target.files[0] ?? null)} hint=${t("Fields: question, documents, passages, answers, unanswerable.")} />`}
    <//>
  <//>`;
}

/** Tell how many questions the documents yielded, and what to do if none. */
export function sayMade({ added }) {
  if (added) say(plural(added, "One question was added.", "{n} questions were added."));
  else say(t("The documents have no headings, definitions or figures to make new questions from. Add some from a file."), "bad");
}

/** The file with a media type by its name, as browsers know neither kind. */
export const questionsOf = (file) => new Blob([file], { type: /\.csv$/i.test(file.name) ? "text/csv" : "application/jsonl" });
