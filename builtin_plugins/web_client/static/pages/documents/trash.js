/** The trash of a knowledge base, and deleting into it. */

import { html, useState } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { ago, bytes, day, plural, t } from "../../lib/words.js";
import { Button, Loaded } from "../../parts/basics.js";
import { Check } from "../../parts/forms.js";
import { Confirm, Dialog, say, sayError } from "../../parts/layers.js";
import { saveJson } from "../../parts/save.js";

/** For how many days deleted documents can be taken back; null until it is known. */
export function useTrashDays(base) {
  const found = useResource((signal) => api.trash({ kb_id: base, query: { limit: 1 }, signal }), [base]);
  return found.error ? 0 : (found.data?.days ?? null);
}

/** What becomes of deleted documents, in one sentence. */
export const fate = (days) => plural(days, "You can take it back from the trash for a day.", "You can take it back from the trash for {n} days.");

const takeBack = (base, id) => api.takeBack({ kb_id: base, document_id: id });

export function DeleteDocument({ base, document, onDeleted, onRestored, onClose }) {
  const days = useTrashDays(base);
  const [forGood, setForGood] = useState(false);
  const [keep, setKeep] = useState(false);
  // Deleting an earlier version, or one that failed, leaves the others: it doesn't go into the trash.
  const hasTrash = days > 0 && document.status !== "superseded";
  const id = document.document_id;
  const remove = async () => {
    const { trashed, receipt } = await api.deleteDocument({ kb_id: base, document_id: id, query: { trash: hasTrash && !forGood } });
    onDeleted();
    if (receipt && keep) saveJson(receipt, `deleted-${id}.json`);
    if (!trashed) return say(t("Deleted for good"));
    const undo = () => takeBack(base, id).then((found) => (onRestored ?? (() => {}))(found), sayError);
    return say(t("Moved to the trash"), "good", "", { title: t("Undo"), run: undo });
  };
  const isFinal = !hasTrash || forGood;
  return html`<${Confirm} title=${t("Delete this document?")} confirm=${isFinal ? t("Delete for good") : t("Delete")} disabled=${days === null} onConfirm=${remove} onClose=${onClose}>
    <p><strong>${document.filename}</strong></p>
    <p>${isFinal ? t("Its text, its passages and the original file are removed for good. Answers no longer use it.") : `${t("Answers no longer use it.")} ${fate(days)}`}</p>
    ${hasTrash && html`<${Check} label=${t("Delete for good")} hint=${t("It can’t be taken back then.")} checked=${forGood} onChange=${setForGood} />`}
    ${isFinal && html`<${Check} label=${t("Save the signed receipt")} hint=${t("It proves what was removed, and when.")} checked=${keep} onChange=${setKeep} />`}
  <//>`;
}

/** The documents in the trash: each is taken back, or deleted for good. */
export function Trash({ base, onRestored, onClose }) {
  const found = useResource((signal) => everything(api.trash, { kb_id: base, signal }), [base]);
  const [gone, setGone] = useState(null);
  const restore = (id) => takeBack(base, id).then((document) => {
    onRestored(document);
    say(t("It is back."));
    found.reload();
  }, sayError);
  return html`<${Dialog} title=${t("Trash")} onClose=${onClose}>
    <${Loaded} of=${found} lines=${3}>${(items) =>
      items.length === 0
        ? html`<p class="muted">${t("The trash is empty.")}</p>`
        : html`<ul class="people">${items.map(
            (item) => html`<li key=${item.document_id} class="row"><div class="grow anywhere"><span class="block">${item.filename}</span>
              <small class="faint">${[bytes(item.size_bytes), ago(item.trashed_at), t("until {day}", { day: day(item.kept_until) })].join(" · ")}</small></div>
              <${Button} small icon="retry" onClick=${() => restore(item.document_id)}>${t("Take back")}<//>
              <${Button} small kind="quiet" icon="trash" aria-label=${t("Delete {name} for good", { name: item.filename })} onClick=${() => setGone(item)} /></li>`,
          )}</ul>`
    }<//>
    ${gone && html`<${ForGood} base=${base} item=${gone} onDeleted=${found.reload} onClose=${() => setGone(null)} />`}
  <//>`;
}

function ForGood({ base, item, onDeleted, onClose }) {
  const [keep, setKeep] = useState(false);
  const remove = async () => {
    const { receipt } = await api.deleteTrashed({ kb_id: base, document_id: item.document_id });
    if (keep) saveJson(receipt, `deleted-${item.document_id}.json`);
    onDeleted();
  };
  return html`<${Confirm} title=${t("Delete this document for good?")} confirm=${t("Delete for good")} onConfirm=${remove} onClose=${onClose}>
    <p><strong>${item.filename}</strong></p>
    <${Check} label=${t("Save the signed receipt")} hint=${t("It proves what was removed, and when.")} checked=${keep} onChange=${setKeep} />
  <//>`;
}
