/** Changing and deleting a knowledge base. */

import { html, useState } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { useAction, useResource } from "../../lib/resource.js";
import { hasOwner, isOwn, owns } from "../../lib/session.js";
import { plural, t } from "../../lib/words.js";
import { Failure, Notice } from "../../parts/basics.js";
import { Field, Form } from "../../parts/forms.js";
import { Confirm, Dialog, say } from "../../parts/layers.js";
import { VisibilityChoice, changesOf } from "./visibility.js";

export function EditBase({ base, onSaved, onClose }) {
  const [name, setName] = useState(base.name);
  const [description, setDescription] = useState(base.description);
  const [seen, setSeen] = useState({ visibility: base.visibility, team_id: base.team_id, organization_id: base.organization_id });
  const action = useAction(async () => {
    const body = changesOf(base, { name, description }, seen);
    onSaved(await api.changeKnowledgeBase({ kb_id: base.id, body }));
    onClose();
    say(t("Saved"));
  });
  return html`<${Dialog} title=${base.name} onClose=${onClose}>
    <${Form} action=${action} submit=${t("Save")} onCancel=${onClose} disabled=${!name.trim()}>
      <${Field} label=${t("Name")} value=${name} onInput=${setName} required autofocus />
      <${Field} label=${t("Description")} as="textarea" value=${description} onInput=${setDescription} optional />
      <${VisibilityChoice} value=${seen} onChange=${setSeen} />
    <//>
  <//>`;
}

/** The pipelines that the request must name, as they are deleted with the base: others' only with others' bases. */
function dependents(base, pipelines) {
  const may = isOwn(base) ? (item) => isOwn(item) || !hasOwner(item) : owns;
  return pipelines.filter((item) => item.knowledge_base_ids.includes(base.id) && may(item));
}

export function DeleteBase({ base, count, onDeleted, onClose }) {
  const pipelines = useResource((signal) => everything(api.pipelines, { signal }));
  const gone = dependents(base, pipelines.data ?? []);
  const remove = async () => {
    const receipt = await api.deleteKnowledgeBase({ kb_id: base.id, body: { confirm_delete_pipeline_ids: gone.map((item) => item.id) } });
    say(receipt.message);
    onDeleted();
  };
  return html`<${Confirm} title=${t("Delete “{name}”?", { name: base.name })} confirm=${t("Delete")} disabled=${!pipelines.data} onConfirm=${remove} onClose=${onClose}>
    <${Failure} error=${pipelines.error} onRetry=${pipelines.reload} />
    <p>${count ? plural(count, "Its only document is removed for good.", "All {n} documents are removed for good.") : t("It has no documents.")}</p>
    ${gone.length > 0 && html`<${Notice} tone="warn"><p>${t("These pipelines search it and are deleted, too: {names}", { names: gone.map((item) => item.name).join(", ") })}</p>
      ${gone.some((item) => item.knowledge_base_ids.length > 1) && html`<p>${t("To keep a pipeline that also searches other knowledge bases, remove this one from it first, under Pipelines.")}</p>`}<//>`}
  <//>`;
}
