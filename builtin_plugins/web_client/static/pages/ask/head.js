/** The head of a conversation: its title, and what its owner can do with it. */

import { html, useRef, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction, useResource } from "../../lib/resource.js";
import { go } from "../../lib/router.js";
import { t } from "../../lib/words.js";
import { Badge, Button, Failure } from "../../parts/basics.js";
import { Field, Form } from "../../parts/forms.js";
import { Confirm, Dialog, Menu, say, sayError } from "../../parts/layers.js";
import { saveJson } from "../../parts/save.js";
import { changed, current, kept, startOver, turns } from "./conversation.js";
import { Shared } from "./share.js";

const begin = () => {
  startOver();
  go("/");
};

/** The server's record of a conversation: none before its first answer. */
const known = (id, signal) =>
  api.conversation({ conversation_id: id, signal }).catch((error) => {
    if (error.status === 404) return null;
    throw error;
  });

export function ConversationHead() {
  const id = current.value;
  const begun = useRef({ id, changes: changed.value });
  if (begun.current.id !== id) begun.current = { id, changes: changed.value };
  const stored = changed.value > begun.current.changes || turns.value.some((turn) => turn.stored);
  const found = useResource(
    (signal) => (kept.value && stored ? known(id, signal) : Promise.resolve(null)),
    [id, changed.value],
  );
  const [dialog, setDialog] = useState("");
  const about = found.data;
  const close = () => setDialog("");
  const pipeline = turns.value.at(-1)?.pipeline.id;
  const told = (work, done) => work.then(() => { done(); found.reload(); }, sayError);
  const items = about && [
    about.own && { title: t("Rename"), icon: "edit", onSelect: () => setDialog("rename") },
    about.own && !about.shared && { title: t("Share with users of the pipeline"), icon: "share", onSelect: () => told(api.shareConversation({ pipeline_id: pipeline, conversation_id: id }), () => setDialog("shared")) },
    about.own && about.shared && { title: t("Who can read this?"), icon: "people", onSelect: () => setDialog("shared") },
    about.own && about.shared && { title: t("Stop sharing"), icon: "lock", onSelect: () => told(api.unshareConversation({ pipeline_id: about.shared_pipeline_id, conversation_id: id }), () => say(t("Only you see it now."))) },
    { title: t("Export"), icon: "download", onSelect: () => api.exportConversation({ conversation_id: id }).then((bundle) => saveJson(bundle, "conversation.json"), sayError) },
    about.own && { title: t("Delete"), icon: "trash", danger: true, onSelect: () => setDialog("delete") },
  ];
  return html`<header class="head">
    <h1 class="grow">${about?.title || turns.value[0].question.slice(0, 120)}</h1>
    <div class="head-actions">
      ${about?.shared && html`<${Badge} tone="accent">${t("Shared")}<//>`}
      <${Button} small icon="plus" onClick=${begin}>${t("New conversation")}<//>
      ${items && html`<${Menu} label=${t("More")} items=${items} />`}
    </div>
    <${Failure} error=${found.error} onRetry=${found.reload} />
    ${dialog === "shared" && html`<${Shared} pipeline=${about.shared_pipeline_id ?? pipeline} onClose=${close} />`}
    ${dialog === "rename" && html`<${Rename} id=${id} title=${about.title ?? ""} onSaved=${() => { changed.value += 1; }} onClose=${close} />`}
    ${dialog === "delete" && html`<${Confirm} title=${t("Delete this conversation?")} confirm=${t("Delete")} onClose=${close}
      onConfirm=${async () => { await api.deleteConversation({ conversation_id: id }); changed.value += 1; begin(); }}><p>${t("Its questions and answers are removed for good.")}</p><//>`}
  </header>`;
}

function Rename({ id, title, onSaved, onClose }) {
  const [text, setText] = useState(title);
  const action = useAction(async () => {
    await api.renameConversation({ conversation_id: id, body: { title: text.trim() || null } });
    onSaved();
    onClose();
  });
  return html`<${Dialog} title=${t("Rename")} onClose=${onClose}>
    <${Form} action=${action} submit=${t("Save")} onCancel=${onClose}><${Field} label=${t("Name")} value=${text} onInput=${setText} maxlength="200" autofocus /><//>
  <//>`;
}
