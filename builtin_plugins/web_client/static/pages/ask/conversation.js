/** The conversation on screen. It outlives its page, so that an answer goes on while one looks elsewhere. */

import { signal } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { eventsOf } from "../../lib/stream.js";

/** Turns, oldest first: {id, question, state, text, sources, done, error, started, pipeline}. */
export const turns = signal([]);

/** Whether an answer is on its way. */
export const answering = signal(false);

let stop = null;
let count = 0;

/** Ask, and show the answer as it comes. `settings` are further fields of the query. */
export async function ask(question, pipeline, settings) {
  count += 1;
  const id = count;
  const turn = { id, question, pipeline, settings, state: "searching", text: "", sources: [], steps: [], done: null, error: null, started: Date.now() };
  turns.value = [...turns.value, turn];
  await answer(turn);
}

/** Ask the same once more, in the same place. */
export function askAgain(turn) {
  change(turn.id, { state: "searching", text: "", sources: [], steps: [], done: null, error: null, started: Date.now() });
  return answer(turn);
}

async function answer({ id, question, pipeline, settings }) {
  stop = new AbortController();
  answering.value = true;
  try {
    const body = { question, ...settings };
    const reply = await api.ask({ pipeline_id: pipeline.id, body, signal: stop.signal, repeatable: true });
    for await (const event of eventsOf(reply)) take(id, event);
  } catch (error) {
    if (error.name === "AbortError") change(id, { state: "stopped" });
    else change(id, { state: "failed", error });
  } finally {
    answering.value = false;
    stop = null;
  }
}

function take(id, { name, data }) {
  const turn = turns.value.find((other) => other.id === id);
  if (!turn) return;
  if (name === "step") change(id, { steps: [...turn.steps, data] });
  else if (name === "sources") change(id, { sources: data.sources, state: "writing" });
  else if (name === "token") change(id, { text: turn.text + data.text, state: "writing" });
  else if (name === "done") change(id, { state: "done", text: data.answer, sources: data.sources, done: data, took: Date.now() - turn.started });
}

function change(id, what) {
  turns.value = turns.value.map((turn) => (turn.id === id ? { ...turn, ...what } : turn));
}

export const stopAnswer = () => stop?.abort();

export function startOver() {
  stopAnswer();
  turns.value = [];
}
