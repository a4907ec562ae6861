/** The conversation on screen. It outlives its page, so that an answer continues on other pages. */

import { computed, signal } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { cutOff } from "../../lib/http.js";
import { account, onNextAccount } from "../../lib/session.js";
import { newId } from "../../lib/plain-http.js";
import { eventsOf } from "../../lib/stream.js";

/** Turns, oldest first: {id, question, state, text, sources, steps, done, error, started, pipeline}. */
export const turns = signal([]);

/** The conversation's id, chosen here with its first question; null before. */
export const current = signal(null);

/** Whether an answer is being received. */
export const answering = signal(false);

/** Increases with each stored turn, to reload lists of conversations. */
export const changed = signal(0);

/** Whether this server keeps conversations at the moment; known once it was asked. */
export const kept = signal(true);

/** The last question, until it is answered, as a reload would lose it. */
export const unanswered = computed(() => {
  const last = turns.value.at(-1);
  return last && last.state !== "done" ? last.question : "";
});

/** Where a conversation's id waits for its first answer: before that, the server doesn't know it. */
const begun = () => `platform.begun.${account.value?.sub}`;

let stop = null;
let count = 0;

// The next account in this tab must not see what another one asked.
onNextAccount(startOver);

/** The id of the conversation on screen, which begins if there is none. */
export function beginConversation() {
  if (!current.value) {
    current.value = newId();
    sessionStorage.setItem(begun(), current.value);
  }
  return current.value;
}

/** Ask, and show the answer as it arrives. `settings` are further fields of the query. */
export async function ask(question, pipeline, settings) {
  beginConversation();
  count += 1;
  const turn = { id: `new-${count}`, question, pipeline, settings, state: "searching", text: "", sources: [], steps: [], done: null, error: null, started: Date.now() };
  turns.value = [...turns.value, turn];
  await answer(turn);
}

/** Ask the same once more, in the same place, with other settings for this question alone. */
export function askAgain(turn, settings = {}) {
  const again = { ...turn, settings: { ...turn.settings, ...settings } };
  change(turn.id, { state: "searching", text: "", sources: [], steps: [], done: null, error: null, started: Date.now(), settings: again.settings });
  return answer(again);
}

async function answer({ id, question, pipeline, settings }) {
  const mine = new AbortController();
  stop = mine;
  answering.value = true;
  const text = textOf(id);
  let complete = false;
  try {
    const body = { question, ...settings, ...(kept.value ? { conversation_id: current.value } : {}) };
    const reply = await api.ask({ pipeline_id: pipeline.id, body, signal: mine.signal, repeatable: true });
    for await (const event of eventsOf(reply)) {
      if (event.name === "token") text.add(event.data.text);
      else {
        text.write();
        take(id, event);
        complete ||= event.name === "done";
      }
    }
    // Some proxies properly end a response that was cut off behind them.
    if (!complete) throw cutOff();
    sessionStorage.removeItem(begun());
    changed.value += 1;
  } catch (error) {
    text.write();
    if (error.name === "AbortError") change(id, { state: "stopped" });
    else change(id, { state: "failed", error });
  } finally {
    if (stop === mine) {
      answering.value = false;
      stop = null;
    }
  }
}

/** The text of an answer as it arrives: drawn at most once per frame, as drawing every word would take too long. */
function textOf(id) {
  let words = "";
  let frame = 0;
  const write = () => {
    cancelAnimationFrame(frame);
    frame = 0;
    const turn = turns.value.find((other) => other.id === id);
    if (turn && words) change(id, { text: turn.text + words, state: "writing" });
    words = "";
  };
  const add = (more) => {
    words += more;
    frame ||= requestAnimationFrame(write);
  };
  return { add, write };
}

function take(id, { name, data }) {
  const turn = turns.value.find((other) => other.id === id);
  if (!turn) return;
  if (name === "step") change(id, { steps: [...turn.steps, data] });
  else if (name === "sources") change(id, { sources: data.sources, state: "writing" });
  else if (name === "done") change(id, { state: "done", text: data.answer, sources: data.sources, done: data, took: Date.now() - turn.started });
}

function change(id, what) {
  turns.value = turns.value.map((turn) => (turn.id === id ? { ...turn, ...what } : turn));
}

/** Rate a stored answer: "up", "down", or null to remove the rating; with a comment. */
export async function rate(turn, rating, comment = "") {
  await api.rateAnswer({ conversation_id: current.value, turn_id: turnIdOf(turn), body: { rating, comment: comment || null } });
  change(turn.id, { rating, comment });
}

/** The server's id of a turn; undefined if the server stores none. */
export const turnIdOf = (turn) => (turn.stored ? turn.id : turn.done?.method_details.conversation?.turn_id);

export function stopAnswer() {
  stop?.abort();
}

export function startOver() {
  stopAnswer();
  turns.value = [];
  current.value = null;
  answering.value = false;
}

/** Show a stored conversation. The server leaves out what its reader may no longer see. */
export async function openConversation(id, abort) {
  if (id === current.value) return;
  startOver();
  const stored = await everything(api.turns, { conversation_id: id, signal: abort }).catch((error) => {
    if (error.status === 404 && sessionStorage.getItem(begun()) === id) return [];
    throw error;
  });
  turns.value = stored.map(restored);
  current.value = id;
}

function restored(turn) {
  const sources = turn.sources.map((source) => ({ ...source, text: "" }));
  const bases = [...new Set(turn.sources.map((source) => source.knowledge_base_id).filter(Boolean))];
  return {
    id: turn.turn_id,
    question: turn.question,
    state: "done",
    text: turn.answer,
    sources,
    stored: true,
    withheld: turn.withheld,
    rating: turn.rating,
    comment: turn.rating_comment,
    steps: [],
    error: null,
    done: { method: turn.method, model_used: turn.model_used, tokens_used: turn.tokens_used, confidence: null, method_details: {} },
    pipeline: { id: turn.pipeline_id, knowledge_base_ids: bases },
    settings: {},
  };
}
