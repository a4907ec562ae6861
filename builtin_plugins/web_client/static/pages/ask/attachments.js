/**
 * Files attached to the questions of a conversation: documents of a private knowledge base of their own, with a tag
 * that names the conversation. So they are there after a reload, and on other devices.
 */

import { computed, signal } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { jsonOf } from "../../lib/http.js";
import { account, isOwn, onNextAccount } from "../../lib/session.js";
import { t } from "../../lib/words.js";
import { say } from "../../parts/layers.js";
import { beginConversation, turns } from "./conversation.js";

/** As many as a question takes. */
const MOST = 20;

/** Where this browser keeps which knowledge base takes them, whatever it is called by now. */
const KEPT = "platform.attachments";

/** What it may be called: another device may speak another language. */
const NAMES = ["Files from questions", "Dateien aus Fragen", "Fichiers joints aux questions", "Archivos de preguntas"];

/** The tag of a file that is no longer attached but may be quoted in answers. */
const IN_ANSWERS = "in-answers";

/** {key, name, base, document, error}; without a document, a file is being sent, or was refused. */
export const attachments = signal([]);

/** Whether these alone are asked, without the source that is chosen. */
export const onlyAttachments = signal(true);

/** The conversation that they belong to. */
let owner = null;
let count = 0;
let stop = new AbortController();

/** The knowledge base that is being made: a second upload waits for it, too. */
let making = null;

onNextAccount(clear);

function clear() {
  stop.abort();
  stop = new AbortController();
  owner = null;
  making = null;
  attachments.value = [];
  onlyAttachments.value = true;
}

/** "sending", "reading", "read" or "failed". */
export function stateOf({ document, error }) {
  if (error || document?.status === "failed") return "failed";
  if (!document) return "sending";
  return document.status === "processing" ? "reading" : "read";
}

const anyIs = (state) => attachments.value.some((item) => stateOf(item) === state);

/** Whether some are still being sent or read, and whether all of these can be asked in part. */
export const beingRead = computed(() => anyIs("reading"));
export const unread = computed(() => anyIs("sending") || anyIs("reading"));
export const isPartlyRead = computed(() => !anyIs("sending") && attachments.value.every((item) => stateOf(item) !== "reading" || item.document.searchable_count > 0));
export const anyFailed = computed(() => anyIs("failed"));

/** The fields of a question that ask them. */
export function attachedFields() {
  const ids = attachments.value.filter((item) => stateOf(item) !== "failed" && item.document).map((item) => item.document.document_id);
  return ids.length ? { attachments: ids, only_attachments: onlyAttachments.value } : { attachments: undefined, only_attachments: undefined };
}

/** The same for a question that is asked again: those of its files that are still attached. A stored one doesn't say which. */
export function attachedFieldsOf({ stored, settings }) {
  const fields = attachedFields();
  if (stored) return fields;
  const ids = settings.attachments?.filter((id) => fields.attachments?.includes(id)) ?? [];
  return ids.length ? { attachments: ids } : { attachments: undefined, only_attachments: undefined };
}

const tagOf = (conversation) => `conversation:${conversation}`;
const tagsOf = (document) => document.metadata.tags ?? [];

/** The knowledge base of attached files; undefined if there is none yet. One that others see is never used. */
async function filesBase(abort) {
  const own = await everything(api.knowledgeBases, { query: { owner_id: account.value.sub }, signal: abort });
  const mine = own.filter((base) => isOwn(base) && base.visibility === "private");
  return mine.find((base) => base.id === localStorage.getItem(KEPT)) ?? mine.find((base) => NAMES.includes(base.name));
}

async function makeBase() {
  const base = (await filesBase()) ?? (await api.createKnowledgeBase({ body: { name: t("Files from questions"), description: t("Files that you attached to questions.") } }));
  localStorage.setItem(KEPT, base.id);
  return base;
}

function madeBase() {
  making ??= makeBase().finally(() => {
    making = null;
  });
  return making;
}

/** Show those of another conversation; null for a new one. */
export async function showAttachments(conversation) {
  if (conversation === owner) return;
  clear();
  owner = conversation;
  if (conversation) await lookAgain();
}

/** Load their states. */
export async function lookAgain() {
  const { signal: abort } = stop;
  const conversation = owner;
  const base = attachments.value.find((item) => item.base)?.base ?? (await filesBase(abort))?.id;
  if (!base) return;
  const before = new Set(attachments.value.filter((item) => item.base === base).map((item) => item.document.document_id));
  const filter = JSON.stringify({ type: "eq", key: "tags", value: tagOf(conversation) });
  const { items } = await api.documents({ kb_id: base, query: { filter, limit: MOST }, signal: abort });
  if (conversation !== owner) return;
  const known = new Set(attachments.value.map((item) => item.document?.document_id));
  const fresh = new Map(items.map((document) => [document.document_id, document]));
  // Others have been removed meanwhile, in another tab or under Documents.
  const left = attachments.value.filter(({ document }) => fresh.has(document?.document_id) || !before.has(document?.document_id));
  attachments.value = [
    ...left.map((item) => (fresh.has(item.document?.document_id) ? { ...item, document: fresh.get(item.document.document_id) } : item)),
    ...items.filter((document) => !known.has(document.document_id)).map((document) => ({ key: document.document_id, name: document.filename, base, document })),
  ].slice(0, MOST);
}

/** Attach files to the conversation on screen, which begins with them if there is none. */
export async function attach(files) {
  const chosen = [...files].slice(0, MOST - attachments.value.length);
  if (chosen.length < files.length) say(t("At most {n} files can be attached.", { n: MOST }), "bad");
  if (!chosen.length) return;
  owner = beginConversation();
  const { signal: abort } = stop;
  const items = chosen.map((file) => {
    count += 1;
    return { key: `new-${count}`, name: file.name };
  });
  attachments.value = [...attachments.value, ...items];
  const base = madeBase();
  await Promise.all(items.map(({ key }, at) => send(key, chosen[at], base, owner, abort)));
}

async function send(key, file, base, conversation, abort) {
  try {
    if (!file.size) throw new Error(t("The file is empty."));
    const { id } = await base;
    const document = await upload(id, file, tagOf(conversation), abort);
    if (conversation !== owner) return;
    const others = attachments.value.filter((item) => item.key !== key);
    // It was removed while it was sent.
    if (others.length === attachments.value.length) return await detach({ key, base: id, document });
    // The same bytes are one document, whatever they are called.
    if (others.some((item) => item.document?.document_id === document.document_id)) attachments.value = others;
    else change(key, { base: id, document });
  } catch (error) {
    change(key, { error });
  }
}

async function upload(base, file, tag, abort) {
  const body = new FormData();
  body.append("file", file);
  const document = await jsonOf(await api.upload({ kb_id: base, body, signal: abort }));
  // It may have been attached to other conversations before.
  const tags = tagsOf(document);
  if (tags.includes(tag)) return document;
  const { metadata } = await api.changeDocumentMetadata({ kb_id: base, document_id: document.document_id, body: { tags: [...tags, tag] } });
  return { ...document, metadata };
}

function change(key, what) {
  attachments.value = attachments.value.map((item) => (item.key === key ? { ...item, ...what } : item));
}

/** Take it off the conversation. It is deleted unless an answer may quote it; then it stays in its knowledge base. */
export async function detach({ key, base, document }) {
  attachments.value = attachments.value.filter((item) => item.key !== key);
  if (!attachments.value.length) onlyAttachments.value = true;
  if (!document) return;
  const place = { kb_id: base, document_id: document.document_id };
  const [mine, isAsked] = [tagOf(owner), turns.value.length > 0 && document.status !== "failed"];
  // It may have been attached to other conversations since it was loaded.
  const others = tagsOf(await api.document(place)).filter((tag) => tag !== mine);
  if (!others.length && !isAsked) return api.deleteDocument(place);
  await api.changeDocumentMetadata({ ...place, body: { tags: isAsked ? [...new Set([...others, IN_ANSWERS])] : others } });
  say(t("Answers no longer use “{name}”. It stays in “Files from questions”.", { name: document.filename }));
}
