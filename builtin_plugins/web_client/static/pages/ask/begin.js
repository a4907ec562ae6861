/** The first visit: drop documents, then ask. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction } from "../../lib/resource.js";
import { go } from "../../lib/router.js";
import { t } from "../../lib/words.js";
import { Failure } from "../../parts/basics.js";
import { DropZone } from "../documents/drop-zone.js";
import { addFiles } from "../documents/uploads.js";

export function Begin() {
  const [files, setFiles] = useState([]);
  const action = useAction(async (chosen) => {
    setFiles(chosen);
    const base = await api.createKnowledgeBase({ body: { name: t("My documents") } });
    addFiles(base.id, chosen);
    go(`/documents/${base.id}`);
  });
  return html`<div class="page narrow begin">
    <div class="hello"><h1>${t("Ask your own documents")}</h1>
      <p class="muted">${t("Add some, ask a question, and see in which document and on which page the answer stands.")}</p></div>
    <${DropZone} busy=${action.busy} onFiles=${action.run} large />
    <${Failure} error=${action.error} onRetry=${() => action.run(files)} />
  </div>`;
}
