/** Files on their way to the server: a few at a time, each with what became of it. */

import { computed, signal } from "../../lib/html.js";
import { api } from "../../lib/api.js";

const AT_ONCE = 3;

/** {id, base, name, size, file, state, error, document}; states: waiting, sending, sent, refused. */
export const uploads = signal([]);

export const sending = computed(() => uploads.value.some((item) => ["waiting", "sending"].includes(item.state)));

const listeners = new Set();
let count = 0;
let active = 0;

/** Hear of each document that the server has taken. Answers how to stop. */
export function onSent(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function addFiles(base, files) {
  const made = [...files].map((file) => {
    count += 1;
    return { id: count, base, name: file.name, size: file.size, file, state: "waiting", error: null };
  });
  uploads.value = [...uploads.value, ...made];
  next();
}

export function retryUpload(id) {
  change(id, { state: "waiting", error: null });
  next();
}

/** Take one off the list: the server never sees it if it has not begun. */
export function removeUpload(id) {
  uploads.value = uploads.value.filter((item) => item.id !== id);
}

function next() {
  while (active < AT_ONCE) {
    const item = uploads.value.find((other) => other.state === "waiting");
    if (!item) return;
    active += 1;
    change(item.id, { state: "sending" });
    send(item).finally(() => {
      active -= 1;
      next();
    });
  }
}

async function send({ id, base, file }) {
  try {
    const body = new FormData();
    body.append("file", file);
    const document = await api.upload({ kb_id: base, body });
    removeUpload(id);
    for (const listener of listeners) listener(base, document);
  } catch (error) {
    change(id, { state: "refused", error });
  }
}

function change(id, what) {
  uploads.value = uploads.value.map((item) => (item.id === id ? { ...item, ...what } : item));
}

addEventListener("beforeunload", (event) => {
  if (sending.value) event.preventDefault();
});
