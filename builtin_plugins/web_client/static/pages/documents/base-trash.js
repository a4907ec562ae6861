/** The knowledge bases in the trash: each is taken back, or deleted for good. */

import { html, useState } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { ago, day, plural, t } from "../../lib/words.js";
import { Button, Loaded } from "../../parts/basics.js";
import { Confirm, Dialog, say, sayError } from "../../parts/layers.js";

export function BaseTrash({ onRestored, onClose }) {
  const found = useResource((signal) => everything(api.trashedBases, { signal }));
  const [gone, setGone] = useState(null);
  const restore = (id) => api.takeBaseBack({ kb_id: id }).then(() => {
    say(t("It is back."));
    found.reload();
    onRestored();
  }, sayError);
  return html`<${Dialog} title=${t("Trash")} onClose=${onClose}>
    <${Loaded} of=${found} lines=${3}>${(items) =>
      items.length === 0
        ? html`<p class="muted">${t("The trash is empty.")}</p>`
        : html`<p class="muted">${t("What you take back is private; share it again.")}</p><ul class="people">${items.map(
            (item) => html`<li key=${item.id} class="row"><div class="grow anywhere"><span class="block">${item.name}</span>
              <small class="faint">${[plural(item.document_count, "One document", "{n} documents"), ago(item.trashed_at), t("until {day}", { day: day(item.kept_until) })].join(" · ")}</small></div>
              <${Button} small icon="retry" onClick=${() => restore(item.id)}>${t("Take back")}<//>
              <${Button} small kind="quiet" icon="trash" aria-label=${t("Delete {name} for good", { name: item.name })} onClick=${() => setGone(item)} /></li>`,
          )}</ul>`
    }<//>
    ${gone && html`<${Confirm} title=${t("Delete “{name}”?", { name: gone.name })} confirm=${t("Delete for good")} onClose=${() => setGone(null)}
      onConfirm=${() => api.deleteTrashedBase({ kb_id: gone.id }).then(found.reload)}><p>${plural(gone.document_count, "Its only document is removed for good.", "All {n} documents are removed for good.")}</p><//>`}
  <//>`;
}
