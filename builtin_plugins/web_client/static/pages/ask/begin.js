/** The first visit: drop documents, then ask. */

import { html, useRef } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction } from "../../lib/resource.js";
import { go } from "../../lib/router.js";
import { t } from "../../lib/words.js";
import { Failure } from "../../parts/basics.js";
import { DropZone } from "../documents/drop-zone.js";
import { addFiles } from "../documents/uploads.js";

export function Begin() {
  const files = useRef([]);
  const made = useRef(null);
  // More may be dropped while the knowledge base is being created: they go into the same one.
  const action = useAction(async (chosen = []) => {
    files.current.push(...chosen);
    made.current ??= api.createKnowledgeBase({ body: { name: t("My documents") } });
    const base = await made.current.catch((error) => {
      made.current = null;
      throw error;
    });
    if (!files.current.length) return;
    addFiles(base.id, files.current.splice(0));
    go(`/documents/${base.id}`);
  });
  return html`<div class="page narrow begin">
    <div class="hello"><h1>${t("Ask your own documents")}</h1>
      <p class="muted">${t("Add some, ask a question, and see which document and page the answer comes from.")}</p></div>
    <${DropZone} busy=${action.busy} onFiles=${action.run} large />
    <${Failure} error=${action.error} onRetry=${() => action.run()} />
  </div>`;
}
