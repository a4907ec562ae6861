/** A question and its answer: the steps, the text with its citations, the sources. */

import { html, useState } from "../../lib/html.js";
import { copyText } from "../../lib/plain-http.js";
import { number, percent, plural, t, whereIs } from "../../lib/words.js";
import { Period } from "./period.js";
import { Button, Failure, Spinner } from "../../parts/basics.js";
import { Icon } from "../../parts/icons.js";
import { Markdown } from "../../parts/markdown.js";
import { say } from "../../parts/layers.js";
import { methodTitle } from "../../parts/methods.js";
import { attachedFieldsOf } from "./attachments.js";
import { Citation } from "./citation.js";
import { askAgain, answering } from "./conversation.js";
import { ModelOffer } from "./models.js";
import { Thumbs } from "./thumbs.js";
import { Speaker } from "./voice.js";

/** From here on, 95 of 100 answers are right; a lower figure would only look exact. */
const SURE = 0.8;

export function Turn({ turn, onShow, isFirst }) {
  const refused = turn.state === "done" && turn.sources.length === 0 && !turn.withheld;
  const show = (source, index) => onShow({ ...source, number: source.number ?? index + 1, bases: turn.pipeline.knowledge_base_ids });
  const cite = (label) => {
    const source = turn.stored ? turn.sources.find((other) => other.number === label) : turn.sources[label - 1];
    return source ? html`<${Citation} source=${source} label=${label} onShow=${() => show(source, label - 1)} />` : `[${label}]`;
  };
  return html`<article class="turn" aria-busy=${["searching", "writing"].includes(turn.state)}>
    <div class="question"><p>${turn.question}</p></div>
    <div class="answer">
      <${Steps} turn=${turn} />
      <${Period} turn=${turn} />
      ${refused ? html`<${Refusal} turn=${turn} />` : turn.text && html`<${Written} turn=${turn} cite=${cite} isFirst=${isFirst} />`}
      ${turn.withheld && html`<p class="faint">${t("Parts of this answer come from documents that were deleted or that you can’t see.")}</p>`}
      ${turn.state === "stopped" && html`<p class="muted">${t("Stopped.")}</p>`}
      <${Failure} error=${turn.error} onRetry=${answering.value ? undefined : () => askAgain(turn, attachedFieldsOf(turn))} />
      ${turn.state === "done" && !refused && html`<${Sources} turn=${turn} onShow=${show} />`}
      ${["done", "stopped"].includes(turn.state) && html`<${Actions} turn=${turn} />`}
    </div>
  </article>`;
}

/** The answer; quotations are not taken for a text that somebody wrote. */
function Written({ turn, cite, isFirst }) {
  const quoted = turn.done?.model_used === "extractive";
  return html`${quoted && html`<h2 class="quoted">${t("From your documents")}</h2>`}
    <${Markdown} text=${turn.text} cite=${cite} />
    ${quoted && turn.state === "done" && html`<p class="faint">${t("Quoted, not written by a model.")}</p>${isFirst && html`<${ModelOffer} />`}`}`;
}

/** What is happening, and afterwards what happened. */
function Steps({ turn }) {
  const bases = turn.pipeline.knowledge_base_ids.length;
  if (turn.state === "searching") {
    const begun = bases ? plural(bases, "Looking for an answer in one knowledge base …", "Looking for an answer in {n} knowledge bases …") : t("Looking for an answer …");
    return html`<p class="steps" role="status"><${Spinner} />${turn.steps.at(-1)?.message ?? begun}</p>`;
  }
  const seconds = turn.took ? number(turn.took / 1000, { maximumFractionDigits: 1 }) : "";
  if (["failed", "stopped"].includes(turn.state) && !turn.sources.length) return null;
  const read = countOf(turn);
  return html`<details class="steps-done">
    <summary>${turn.state === "writing" ? html`<${Spinner} />` : html`<${Icon} name="check" size=${15} />`}${read}${seconds && ` · ${t("{n} s", { n: seconds })}`}</summary>
    <${Trace} turn=${turn} />
  </details>`;
}

/** How many passages an answer is based on. */
function countOf({ sources, state, withheld }) {
  if (!sources.length && withheld) return t("Read passages that you can’t see");
  if (state === "done" && !sources.length) return t("Found nothing that answers it");
  return plural(sources.length, "Read one passage", "Read {n} passages");
}

function Trace({ turn }) {
  const { done } = turn;
  if (!done) return null;
  const { degraded = [], retrieval, ...rest } = done.method_details;
  const facts = [
    [t("Method"), methodTitle(done.method)],
    retrieval && [t("Search"), retrieval],
    [t("Model"), done.model_used],
    done.confidence >= SURE && [t("Confidence"), percent(done.confidence)],
    done.tokens_used && [t("Tokens"), number(done.tokens_used)],
    ...Object.entries(rest)
      .filter(([, value]) => ["string", "number", "boolean"].includes(typeof value))
      .map(([key, value]) => [key.replaceAll("_", " "), String(value)]),
  ].filter(Boolean);
  return html`<dl class="facts trace">${facts.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>
    ${turn.steps.map((step) => html`<p class="faint">${step.message ?? step.name}</p>`)}
    ${degraded.map((text) => html`<p class="faint">${text}</p>`)}`;
}

/** An honest "no" looks like an answer, not like a failure. */
function Refusal({ turn }) {
  const [base] = turn.pipeline.knowledge_base_ids; // unknown of a stored answer without sources
  return html`<div class="refusal">
    <span class="empty-icon"><${Icon} name="search" size=${22} /></span>
    <div class="stack close">
      <h2>${t("Your documents don’t say")}</h2>
      <p>${turn.text}</p>
      <p class="muted">${t("Ask in other words, choose another source below, or add a document that covers it.")}</p>
      <div class="row"><${Button} small icon="upload" to=${base ? `/documents/${base}` : "/documents"}>${t("Add documents")}<//></div>
    </div>
  </div>`;
}

function Sources({ turn, onShow }) {
  const cited = new Set([...turn.text.matchAll(/\[(\d+)\]/g)].map((found) => Number(found[1])));
  const [all, setAll] = useState(false);
  const list = turn.sources.map((source, index) => ({ source, index })).filter(({ source, index }) => all || cited.has(source.number ?? index + 1) || !cited.size);
  const others = turn.sources.length - list.length;
  return html`<div class="sources">
    <ul>
      ${list.map(
        ({ source, index }) => html`<li key=${source.chunk_id}>
          <button type="button" class="source" onClick=${() => onShow(source, index)}>
            <span class="source-number">${source.number ?? index + 1}</span><span class="clip">${source.source}</span>
            ${whereIs(source) && html`<small>${whereIs(source)}</small>`}
            ${source.being_read && html`<small>${t("still being read")}</small>`}
            ${source.superseded_at && html`<small class="changed">${t("changed since")}</small>`}
          </button>
        </li>`,
      )}
    </ul>
    ${others > 0 && html`<${Button} kind="link" onClick=${() => setAll(true)}>${plural(others, "One more passage was read", "{n} more passages were read")}<//>`}
  </div>`;
}

function Actions({ turn }) {
  const copy = async () => {
    if (await copyText(turn.text)) say(t("Copied"));
    else say(t("The browser doesn’t let pages copy."), "bad");
  };
  return html`<div class="row turn-actions">
    <${Button} kind="quiet" small icon="copy" aria-label=${t("Copy the answer")} onClick=${copy} />
    <${Speaker} text=${turn.text} />
    <${Thumbs} turn=${turn} />
    <${Button} kind="quiet" small icon="retry" aria-label=${t("Ask again")} disabled=${answering.value} onClick=${() => askAgain(turn, attachedFieldsOf(turn))} />
  </div>`;
}
