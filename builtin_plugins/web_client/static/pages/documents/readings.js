/** Documents sent from this tab that are being read: a message, and the tab's title, say when the last one is done. */

import { api } from "../../lib/api.js";
import { onNextAccount } from "../../lib/session.js";
import { plural, t } from "../../lib/words.js";
import { say } from "../../parts/layers.js";

const PAUSE = 2500;
const MOST = 500;

/** By document: {base, name}. */
const waiting = new Map();
let ended = [];
let timer = 0;

onNextAccount(() => {
  waiting.clear();
  ended = [];
});

/** Say when this document, which the server has just accepted, has been read. */
export function followReading(base, { document_id: id, filename: name, status }) {
  if (status !== "processing") return;
  waiting.set(id, { base, name });
  timer ||= setTimeout(look, PAUSE);
}

async function look() {
  const bases = new Set([...waiting.values()].map(({ base }) => base));
  await Promise.allSettled([...bases].map(lookAt)); // what failed is looked at again
  timer = waiting.size ? setTimeout(look, PAUSE) : 0;
  if (!timer && ended.length) tell(await outcomes(ended.splice(0)));
}

async function lookAt(base) {
  const { items, total } = await api.documents({ kb_id: base, query: { status: "processing", limit: MOST } });
  if (total > items.length) return;
  const going = new Set(items.map((item) => item.document_id));
  for (const [id, item] of waiting) {
    if (item.base !== base || going.has(id)) continue;
    waiting.delete(id);
    ended.push({ id, ...item });
  }
}

/** The names of those that can be asked now, and how many could not be read. */
async function outcomes(documents) {
  const bases = [...new Set(documents.map(({ base }) => base))];
  const lists = await Promise.allSettled(bases.map((base) => api.documents({ kb_id: base, query: { status: "failed", limit: MOST } })));
  const failed = new Set(lists.flatMap((list) => list.value?.items ?? []).map((item) => item.document_id));
  const read = documents.filter(({ id }) => !failed.has(id)).map(({ name }) => name);
  return { read, failed: documents.length - read.length };
}

function tell({ read, failed }) {
  const show = () => {
    if (read.length === 1) say(t("“{name}” has been read: you can ask about it now.", { name: read[0] }));
    else if (read.length) say(plural(read.length, "One file has been read: you can ask about it now.", "{n} files have been read: you can ask about them now."));
    if (failed) say(plural(failed, "One file could not be read.", "{n} files could not be read."), "bad");
  };
  if (!document.hidden) return show();
  const before = document.title;
  const done = read.length ? `✓ ${t("Has been read")} · ${before}` : `! ${t("Could not be read")} · ${before}`;
  document.title = done;
  const back = () => {
    if (document.hidden) return;
    document.removeEventListener("visibilitychange", back);
    if (document.title === done) document.title = before;
    show();
  };
  document.addEventListener("visibilitychange", back);
}
