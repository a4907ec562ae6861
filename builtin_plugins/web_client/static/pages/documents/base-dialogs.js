/** Changing and deleting a knowledge base. */

import { html, useState } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { useAction, useResource } from "../../lib/resource.js";
import { isOwn, owns } from "../../lib/session.js";
import { plural, t } from "../../lib/words.js";
import { Badge, Button, Failure, Notice } from "../../parts/basics.js";
import { Check, Field, Form } from "../../parts/forms.js";
import { Confirm, Dialog, say, sayError } from "../../parts/layers.js";
import { ModelField } from "../../parts/model-field.js";
import { titleOf } from "./fields.js";
import { fate, useTrashDays } from "./trash.js";
import { VisibilityChoice, besidesPeople, changesOf } from "./visibility.js";

export function EditBase({ base, onSaved, onClose }) {
  const [name, setName] = useState(base.name);
  const [description, setDescription] = useState(base.description);
  const [seen, setSeen] = useState({ visibility: base.visibility, team_id: base.team_id, organization_id: base.organization_id });
  const [publishing, setPublishing] = useState(base.publishing);
  const [model, setModel] = useState(base.llm_model ?? "");
  const [dates, setDates] = useState({ date_field: base.date_field, accept_dates: base.accept_dates });
  const action = useAction(async () => {
    const body = changesOf(base, { name, description, publishing, llm_model: model || null, ...dates }, seen);
    onSaved(await api.changeKnowledgeBase({ kb_id: base.id, body }));
    onClose();
    say(t("Saved"));
  });
  return html`<${Dialog} title=${base.name} onClose=${onClose}>
    <${Form} action=${besidesPeople(action)} submit=${t("Save")} onCancel=${onClose} disabled=${!name.trim()}>
      <${Field} label=${t("Name")} value=${name} onInput=${setName} required autofocus />
      <${Field} label=${t("Description")} as="textarea" value=${description} onInput=${setDescription} optional />
      <${ModelField} label=${t("Model for answers")} hint=${t("It answers questions to this knowledge base, unless a pipeline or the question names another.")} value=${model} onInput=${setModel} />
      <${VisibilityChoice} value=${seen} owner=${base.owner_id} error=${action.error} onChange=${setSeen} />
      <${Check} label=${t("Whoever sees it may also publish it")} hint=${t("Published chats answer visitors of websites, who have no account here.")} checked=${publishing === "allowed"} onChange=${(yes) => setPublishing(yes ? "allowed" : "owner")} />
      <${DateChoice} base=${base.id} value=${dates} onChange=${setDates} />
    <//>
    <${PublishedIn} base=${base} />
  <//>`;
}

/** Sharing in one step: who sees the knowledge base, and nothing else. */
export function ShareBase({ base, onSaved, onClose }) {
  const [seen, setSeen] = useState({ visibility: base.visibility, team_id: base.team_id, organization_id: base.organization_id });
  const action = useAction(async () => {
    onSaved(await api.changeKnowledgeBase({ kb_id: base.id, body: changesOf(base, {}, seen) }));
    onClose();
    say(t("Saved"));
  });
  return html`<${Dialog} title=${t("Share “{name}”", { name: base.name })} onClose=${onClose}>
    <${Form} action=${besidesPeople(action)} submit=${t("Save")} onCancel=${onClose}>
      <${VisibilityChoice} value=${seen} owner=${base.owner_id} error=${action.error} onChange=${setSeen} />
    <//>
  <//>`;
}

/** The chats that answer visitors from the knowledge base; its owner turns them off. */
function PublishedIn({ base }) {
  const chats = useResource((signal) => everything(api.publishingChats, { kb_id: base.id, signal }), [base.id]);
  const end = (chat) => api.endPublishingChat({ kb_id: base.id, endpoint_id: chat.id }).then(chats.reload, sayError);
  if (chats.error?.status === 404) return null; // no plugin publishes chats
  if (chats.error) return html`<${Failure} error=${chats.error} onRetry=${chats.reload} />`;
  if (!chats.data?.length) return null;
  return html`<h3>${t("Published in")}</h3><ul>${chats.data.map(
    (chat) => html`<li key=${chat.id} class="row"><span class="grow">${t("{name}, by {owner}", { name: chat.name, owner: chat.owner ?? "–" })}</span>
      ${chat.state === "open" ? html`<${Button} small onClick=${() => end(chat)}>${t("Turn off")}<//>` : html`<${Badge}>${t("Off")}<//>`}</li>`,
  )}</ul>`;
}

/** Which date of a document counts when a question names a period. */
function DateChoice({ base, value, onChange }) {
  const found = useResource((signal) => api.fields({ kb_id: base, signal }), [base]);
  const fields = (found.data?.items ?? []).filter(({ name, kind }) => kind === "date" && !name.startsWith("valid_"));
  return html`<${Check} label=${t("Use dates of validity from the text without confirmation")} hint=${t("For example, “applies from 1 July 2026”.")} checked=${value.accept_dates} onChange=${(yes) => onChange({ ...value, accept_dates: yes })} />
    <${Field} as="select" pick label=${t("Date that counts if a document says nothing about its validity")} value=${value.date_field ?? ""} onInput=${(name) => onChange({ ...value, date_field: name || null })}>
      <option value="">–</option>
      ${fields.map((field) => html`<option key=${field.name} value=${field.name}>${titleOf(field)}</option>`)}
    <//>`;
}

/** The pipelines that the request must name, as they are deleted with the base: others' only with others' bases. */
function dependents(base, pipelines) {
  const may = isOwn(base) ? isOwn : owns;
  return pipelines.filter((item) => item.knowledge_base_ids.includes(base.id) && may(item));
}

export function DeleteBase({ base, count, onDeleted, onClose }) {
  const days = useTrashDays(base.id);
  const pipelines = useResource((signal) => everything(api.pipelines, { signal }));
  const [forGood, setForGood] = useState(false);
  const gone = dependents(base, pipelines.data ?? []);
  const isFinal = !days || forGood;
  const remove = async () => {
    if (isFinal) await api.deleteKnowledgeBase({ kb_id: base.id, body: { confirm_delete_pipeline_ids: gone.map((item) => item.id) } });
    else await api.discardBase({ body: { knowledge_base_id: base.id } });
    say(isFinal ? t("Deleted for good") : t("Moved to the trash"));
    onDeleted();
  };
  return html`<${Confirm} title=${t("Delete “{name}”?", { name: base.name })} confirm=${isFinal ? t("Delete for good") : t("Delete")} disabled=${days === null || (isFinal && !pipelines.data)} onConfirm=${remove} onClose=${onClose}>
    <${Failure} error=${pipelines.error} onRetry=${pipelines.reload} />
    ${isFinal ? html`<p>${count ? plural(count, "Its only document is removed for good.", "All {n} documents are removed for good.") : t("It has no documents.")}</p>
        ${gone.length > 0 && html`<${Notice} tone="warn"><p>${t("These pipelines search it and are deleted, too: {names}", { names: gone.map((item) => item.name).join(", ") })}</p>
          ${gone.some((item) => item.knowledge_base_ids.length > 1) && html`<p>${t("To keep a pipeline that also searches other knowledge bases, remove this one from it first, under Pipelines.")}</p>`}<//>`}`
      : html`<p>${`${t("Answers no longer use it.")} ${fate(days)}`}</p><p>${t("Nobody else sees it then, until you share it again.")}</p>`}
    ${days > 0 && html`<${Check} label=${t("Delete for good")} hint=${t("It can’t be taken back then.")} checked=${forGood} onChange=${setForGood} />`}
  <//>`;
}
