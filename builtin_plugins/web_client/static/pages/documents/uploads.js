/** Uploads: a few at a time, each with its outcome. */

import { computed, signal } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { jsonOf } from "../../lib/http.js";
import { onNextAccount } from "../../lib/session.js";
import { t } from "../../lib/words.js";
import { folderPaths } from "../../parts/file-drop.js";
import { followReading } from "./readings.js";

const AT_ONCE = 3;
/** Errors that the same file would get again: no knowledge base, too large, unknown type, no text. */
const FINAL = new Set([404, 413, 415, 422]);

/** Characters; a file with a longer path is sent without one. */
const LONGEST_PATH = 500;

/**
 * {id, base, name, file, onConflict, state, error, final, document, replaceable}; states: waiting, sending, refused,
 * known, which is what the server has already, perhaps under another name, and taken: another document has its name.
 */
export const uploads = signal([]);

export const sending = computed(() => uploads.value.some((item) => ["waiting", "sending"].includes(item.state)));

const listeners = new Set();
let count = 0;
let active = 0;
let stop = new AbortController();

// Nor may the next account in this tab send what another one chose.
onNextAccount(() => {
  stop.abort();
  stop = new AbortController();
  uploads.value = [];
});

/** Call `fn` for each document that the server has accepted. Returns how to stop. */
export function onSent(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function addFiles(base, files) {
  const made = [...files].map((file) => {
    count += 1;
    const item = { id: count, base, name: file.name, file, onConflict: "fail" };
    return file.size ? { ...item, state: "waiting" } : { ...item, state: "refused", error: new Error(t("The file is empty.")), final: true };
  });
  uploads.value = [...uploads.value, ...made];
  next();
}

export function retryUpload(id) {
  change(id, { state: "waiting", error: null });
  next();
}

/** Send one whose name is taken again, to `replace` the document of its name or to `keep` both. */
export function settleUpload(id, onConflict) {
  change(id, { state: "waiting", onConflict });
  next();
}

/** Remove one from the list; if it has not begun, it is never sent. */
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

async function send({ id, base, file, onConflict }) {
  try {
    const body = new FormData();
    const path = pathOf(file);
    if (path) body.append("path", path);
    else body.append("on_conflict", onConflict);
    body.append("file", file);
    const answer = await api.upload({ kb_id: base, body, signal: stop.signal });
    const document = await jsonOf(answer);
    // An existing one with this name that is still being read may be from a first try whose response was lost.
    const isKnown = answer.status === 200 && (document.status === "completed" || document.filename !== file.name);
    if (isKnown) change(id, { state: "known", document });
    else removeUpload(id);
    for (const listener of listeners) listener(base, document);
    followReading(base, document);
  } catch (error) {
    if (error.code === "document_exists") change(id, { state: "taken", replaceable: error.detail.document_ids.length === 1 });
    else change(id, { state: "refused", error, final: FINAL.has(error.status) || error.code === "unreadable" });
  }
}

/** The path of a file that came with its folder; a changed one then replaces its earlier version. */
function pathOf(file) {
  const path = file.webkitRelativePath || folderPaths.get(file) || "";
  return path.length <= LONGEST_PATH ? path : "";
}

function change(id, what) {
  uploads.value = uploads.value.map((item) => (item.id === id ? { ...item, ...what } : item));
}

addEventListener("beforeunload", (event) => {
  if (sending.value) event.preventDefault();
});
