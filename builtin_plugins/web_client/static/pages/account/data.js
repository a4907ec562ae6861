/** The user's stored data: to download, and to delete. */

import { html, useEffect, useRef, useState } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { ifThere, received } from "../../lib/http.js";
import { useAction, useResource } from "../../lib/resource.js";
import { account, isOwn } from "../../lib/session.js";
import { plural, t } from "../../lib/words.js";
import { Button, Failure, Loaded, Meter, Notice } from "../../parts/basics.js";
import { Field, Form } from "../../parts/forms.js";
import { Dialog, say } from "../../parts/layers.js";
import { saveBlob } from "../../parts/save.js";
import { changed, startOver } from "../ask/conversation.js";

/** Everything of one's own that can be deleted here, in order of deletion: what needs something comes before it. */
async function ownThings(signal) {
  const [chats, pipelines, bases, talks, keys] = await Promise.all([
    ifThere(everything(api.chats, { signal }), []),
    everything(api.pipelines, { signal }),
    everything(api.knowledgeBases, { signal }),
    ifThere(api.conversations({ query: { limit: 1 }, signal }), { total: 0 }),
    ifThere(everything(api.keys, { signal }), []),
  ]);
  return { chats: chats.filter(isOwn), pipelines: pipelines.filter(isOwn), bases: bases.filter(isOwn), talks: talks.total, keys };
}

/** Each thing as one request. */
const requests = ({ chats, pipelines, bases, talks, keys }) => [
  ...chats.map(({ id }) => () => api.deleteChat({ endpoint_id: id })),
  ...pipelines.map(({ id }) => () => api.deletePipeline({ pipeline_id: id })),
  ...bases.map(({ id }) => () => api.deleteKnowledgeBase({ kb_id: id, body: { confirm_delete_pipeline_ids: [] } })),
  ...(talks ? [() => api.deleteConversations()] : []),
  ...keys.map(({ id }) => () => api.revokeKey({ token_id: id })),
];

export function YourData() {
  const [deleting, setDeleting] = useState(false);
  const download = useAction(async () => {
    const answer = await api.exportConversations();
    saveBlob(await received(answer, () => {}), "conversations.json");
  });
  return html`<section class="panel"><h2>${t("Your data")}</h2>
    <p class="muted">${t("A knowledge base is exported from its own page, under “More” (⋮).")}</p>
    <div class="row"><${Button} icon="download" busy=${download.busy} onClick=${download.run}>${t("Download your conversations")}<//>
      <${Button} icon="trash" onClick=${() => setDeleting(true)}>${t("Delete your data")}<//></div>
    <${Failure} error=${download.error} />
    ${deleting && html`<${DeleteData} onClose=${() => setDeleting(false)} />`}
  </section>`;
}

function DeleteData({ onClose }) {
  const found = useResource(ownThings);
  return html`<${Dialog} title=${t("Delete your data?")} onClose=${onClose}>
    <${Loaded} of=${found} lines=${3}>${(things) => html`<${Delete} things=${things} onFailed=${found.reload} onClose=${onClose} />`}<//>
  <//>`;
}

function Delete({ things, onFailed, onClose }) {
  const name = account.value.username;
  const [typed, setTyped] = useState("");
  const [done, setDone] = useState(0);
  const [total, setTotal] = useState(0);
  const closed = useRef(false);
  useEffect(() => () => (closed.current = true), []);
  const action = useAction(async () => {
    const left = requests(things);
    setTotal(left.length);
    for (const [index, request] of left.entries()) {
      if (closed.current) return;
      setDone(index);
      await ifThere(request(), null).catch((error) => {
        onFailed();
        throw error;
      });
    }
    startOver();
    changed.value += 1;
    onClose();
    say(t("Your data is deleted."));
  });
  const list = contents(things);
  return html`<${Form} action=${action} submit=${t("Delete")} submitKind="danger" disabled=${!list.length || typed !== name} onCancel=${onClose}>
    ${list.length ? html`<p>${t("Removed for good, including for people you share it with:")}</p><ul>${list.map((line) => html`<li key=${line}>${line}</li>`)}</ul>` : html`<p>${t("You have nothing to delete.")}</p>`}
    <${Notice}>${t("Your account, the audit log, and what you asked in other people’s conversations stay.")}<//>
    ${list.length > 0 && html`<${Field} label=${t("To confirm, type your username: {name}", { name })} value=${typed} onInput=${setTyped} autocomplete="off" autocapitalize="none" disabled=${action.busy} autofocus />`}
    ${action.busy && html`<${Meter} value=${done} max=${total} label=${t("Deleting")} />`}
    ${action.error && html`<p class="hint">${t("What was deleted before the error is gone; the list shows what is left.")}</p>`}
  <//>`;
}

/** In words, without what there is none of. */
function contents({ chats, pipelines, bases, talks, keys }) {
  const documents = bases.reduce((sum, base) => sum + base.document_count, 0);
  const alone = plural(bases.length, "One knowledge base", "{n} knowledge bases");
  return [
    bases.length && (documents ? t("{bases} with {documents}", { bases: alone, documents: plural(documents, "one document", "{n} documents in all") }) : alone),
    pipelines.length && plural(pipelines.length, "One pipeline", "{n} pipelines"),
    chats.length && plural(chats.length, "One published chat", "{n} published chats"),
    talks && plural(talks, "One conversation", "{n} conversations"),
    keys.length && plural(keys.length, "One key for a program", "{n} keys for programs"),
  ].filter(Boolean);
}
