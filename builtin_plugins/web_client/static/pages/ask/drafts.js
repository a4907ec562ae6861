/** What is being typed in each conversation: kept over a reload and visits to other pages, until one signs out. */

import { useEffect, useLayoutEffect, useRef, useState } from "../../lib/html.js";
import { draftsKey } from "../../lib/session.js";
import { current, turns, unanswered } from "./conversation.js";

const NEW = "new"; // no conversation has this id

function load() {
  try {
    return new Map(Object.entries(JSON.parse(sessionStorage.getItem(draftsKey()) ?? "{}")));
  } catch {
    return new Map();
  }
}

function save(id, text) {
  const drafts = load();
  if (text) drafts.set(id, text);
  else drafts.delete(id);
  if (drafts.size) sessionStorage.setItem(draftsKey(), JSON.stringify(Object.fromEntries(drafts)));
  else sessionStorage.removeItem(draftsKey());
}

/** A question that is already in the conversation is no longer a draft. */
function draftOf(id) {
  const text = load().get(id) ?? "";
  return text === turns.value.at(-1)?.question ? "" : text;
}

/** [text, setText] for a conversation, undefined for a new one. An unanswered question is kept like a draft. */
export function useDraft(conversation) {
  const id = conversation ?? NEW;
  const here = useRef(id);
  const [text, setText] = useState(() => draftOf(id));
  const restored = useRef(text);
  useLayoutEffect(() => {
    if (here.current === id) return;
    // The new conversation has got its id with its first question: what is typed meanwhile goes with it.
    const isSame = here.current === NEW && id === current.value;
    if (isSame) save(NEW, "");
    here.current = id;
    if (isSame) save(id, text || unanswered.value);
    else setText((restored.current = draftOf(id)));
  }, [id]);
  // The page was left before it heard of the answer, which comes with the conversation.
  useEffect(() => {
    if (text && text === restored.current && text === turns.value.at(-1)?.question) setText("");
  }, [turns.value]);
  useEffect(() => save(here.current, text || unanswered.value), [text, unanswered.value]);
  return [text, setText];
}
