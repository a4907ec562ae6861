/** A set of questions, and what each expects to be found. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction, useResource } from "../../lib/resource.js";
import { query, setQuery } from "../../lib/router.js";
import { owns } from "../../lib/session.js";
import { number, plural, t } from "../../lib/words.js";
import { Badge, Button, Empty, Failure, Head, Loaded } from "../../parts/basics.js";
import { say } from "../../parts/layers.js";
import { Candidates } from "./candidates.js";
import { questionsOf, sayMade } from "./page.js";
import { StartRun } from "./start.js";

const AT_ONCE = 50;

async function load(id, offset, signal) {
  const [set, questions] = await Promise.all([
    api.evaluationSet({ set_id: id, signal }),
    api.evaluationQuestions({ set_id: id, query: { limit: AT_ONCE, offset }, signal }),
  ]);
  const base = await api.knowledgeBase({ kb_id: set.knowledge_base_id, signal });
  return { set, questions, mine: owns(base) };
}

export default function QuestionSet({ id }) {
  const offset = Number(query.value.get("offset")) || 0;
  const found = useResource((signal) => load(id, offset, signal), [id, offset]);
  const [starting, setStarting] = useState(false);
  const add = useAction(async (work) => {
    await work();
    await found.reload();
  });
  const upload = async (file) => {
    const { added } = await api.uploadQuestions({ set_id: id, body: questionsOf(file) });
    say(plural(added, "One question was added.", "{n} questions were added."));
  };
  const make = async () => sayMade(await api.generateQuestions({ set_id: id, body: {} }));
  return html`<div class="page">
    <${Loaded} of=${found} back=${{ to: "/evaluation", title: t("Evaluation") }}>${({ set, questions, mine }) => html`
      <${Head} title=${set.name} about=${plural(set.question_count, "One question", "{n} questions")} back=${{ to: `/evaluation?base=${set.knowledge_base_id}`, title: t("Evaluation") }}>${mine && html`
        <label class="button button-plain"><span>${t("Add from a file")}</span><input class="hidden" type="file" accept=".jsonl,.json,.csv" onChange=${(event) => event.target.files[0] && add.run(() => upload(event.target.files[0]))} /></label>
        <${Button} busy=${add.busy} onClick=${() => add.run(make)}>${t("Make from the documents")}<//>
        <${Button} kind="primary" disabled=${!set.question_count} onClick=${() => setStarting(true)}>${t("Run")}<//>`}
      <//>
      <${Failure} error=${add.error} />
      ${questions.items.length ? html`<${Questions} set=${id} mine=${mine} page=${questions} offset=${offset} onChanged=${found.reload} />` : html`<${Empty} icon="evaluation" title=${t("No questions yet")}>${mine ? t("Add some from a file, or make them from the documents.") : t("Only the owner of a knowledge base can evaluate it.")}<//>`}
      ${mine && html`<${Candidates} set=${id} onTaken=${found.reload} />`}
      ${starting && html`<${StartRun} set=${set} onClose=${() => setStarting(false)} />`}
    `}<//>
  </div>`;
}

function Questions({ set, mine, page, offset, onChanged }) {
  return html`<div class="table-box" tabindex="0" role="region" aria-label=${t("Questions")}><table>
      <thead><tr><th>${t("Question")}</th><th>${t("Expected")}</th><th><span class="hidden">${t("Actions")}</span></th></tr></thead>
      <tbody>${page.items.map((item) => html`<${QuestionRow} key=${item.id} set=${set} mine=${mine} item=${item} onChanged=${onChanged} />`)}</tbody></table></div>
    ${page.total > AT_ONCE && html`<div class="row center">
      <${Button} icon="back" aria-label=${t("Previous")} disabled=${offset === 0} onClick=${() => setQuery({ offset: Math.max(0, offset - AT_ONCE) || null })} />
      <span class="muted">${t("{from} to {to} of {total}", { from: number(offset + 1), to: number(offset + page.items.length), total: number(page.total) })}</span>
      <${Button} icon="next" aria-label=${t("Next")} disabled=${offset + AT_ONCE >= page.total} onClick=${() => setQuery({ offset: offset + AT_ONCE })} />
    </div>`}`;
}

function QuestionRow({ set, mine, item, onChanged }) {
  const remove = useAction(async () => {
    await api.deleteEvaluationQuestion({ set_id: set, question_id: item.id });
    onChanged();
  });
  const expected = item.unanswerable ? [t("A refusal")] : [...item.answers, ...item.documents, ...item.passages];
  return html`<tr>
    <td>${item.question} ${item.origin === "generated" && html`<${Badge}>${t("made by the server")}<//>`}<${Failure} error=${remove.error} /></td>
    <td class="muted">${expected.slice(0, 3).map((text) => text.slice(0, 120)).join(" · ")}</td>
    <td class="right">${mine && html`<${Button} kind="quiet" small icon="trash" aria-label=${t("Delete")} busy=${remove.busy} onClick=${remove.run} />`}</td>
  </tr>`;
}
