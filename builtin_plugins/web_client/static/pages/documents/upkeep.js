/** Work on a whole knowledge base: another embedding model, summary trees. */

import { html, useEffect, useRef, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction, usePolling, useResource } from "../../lib/resource.js";
import { owns } from "../../lib/session.js";
import { t } from "../../lib/words.js";
import { Button, Failure, Meter, Notice } from "../../parts/basics.js";
import { Check, Field, Form } from "../../parts/forms.js";
import { Dialog, say } from "../../parts/layers.js";

const PAUSE = 1_500;
export const IMPORT = "rag.import_knowledge_base";
const KINDS = { "rag.reembed": "The embedding model is being changed", "rag.build_trees": "Trees are being built", "rag.find_contradictions": "Documents are being compared", [IMPORT]: "The knowledge base is being imported" };
const ENDED = ["done", "failed", "cancelled"];

/** The running jobs on the whole base, and the import that ended without making it: {going, lost, error, reload}. */
export function useUpkeep(base, onEnded) {
  const found = useResource(async (signal) => (await api.jobs({ query: { subject: base, limit: 20 }, signal })).items.filter((job) => KINDS[job.kind]), [base]);
  const going = (found.data ?? []).filter((job) => !ENDED.includes(job.status));
  const before = useRef(0);
  useEffect(() => {
    if (going.length < before.current) onEnded();
    before.current = going.length;
  }, [going.length]);
  const lost = (found.data ?? []).find((job) => job.kind === IMPORT && ["failed", "cancelled"].includes(job.status));
  usePolling(found.reload, PAUSE, going.length > 0);
  return { going, lost, error: found.error, reload: found.reload };
}

export const Upkeep = ({ upkeep }) => html`<${Failure} error=${upkeep.error} onRetry=${upkeep.reload} />
  ${upkeep.going.map((job) => html`<${Going} key=${job.id} job=${job} onChanged=${upkeep.reload} />`)}`;

function Going({ job, onChanged }) {
  const cancel = useAction(async () => {
    await api.cancelJob({ job_id: job.id });
    say(t("It will stop in a moment."));
    onChanged();
  });
  const { done = 0, total = null } = job.progress ?? {};
  const stop = owns(job) && html`<${Button} small busy=${cancel.busy || job.cancel_requested} onClick=${cancel.run}>${t("Cancel")}<//>`;
  return html`<${Notice} title=${t(KINDS[job.kind])} action=${stop}>
    <p>${t("You can keep asking questions while this runs.")}</p><${Meter} value=${done} max=${total} label=${t(KINDS[job.kind])} /><${Failure} error=${cancel.error} /><//>`;
}

export function Reembed({ base, onBegun, onClose }) {
  const [model, setModel] = useState("");
  const action = useAction(async () => {
    await api.reembed({ kb_id: base.id, body: { embedding_model: model.trim() } });
    onBegun();
    onClose();
  });
  return html`<${Dialog} title=${t("Another embedding model")} onClose=${onClose}>
    <${Form} action=${action} submit=${t("Change the model")} onCancel=${onClose} disabled=${!model.trim() || model.trim() === base.embedding_model}>
      <p class="muted">${t("It decides which passages are found for a question. All passages are embedded again; the old model is used until that is done.")}</p>
      <dl class="facts"><dt>${t("Now")}</dt><dd><code>${base.embedding_model}</code></dd></dl>
      <${Field} label=${t("New model")} value=${model} onInput=${setModel} placeholder="all-MiniLM-L6-v2" hint=${t("A name that isn’t known here is refused with a list of those that are.")} autocomplete="off" autofocus />
    <//>
  <//>`;
}

export function Trees({ base, onBegun, onClose }) {
  const [rebuild, setRebuild] = useState(false);
  const action = useAction(async () => {
    await api.buildTrees({ kb_id: base.id, body: { rebuild } });
    onBegun();
    onClose();
  });
  return html`<${Dialog} title=${t("Trees of summaries")} onClose=${onClose}>
    <${Form} action=${action} submit=${t("Build")} onCancel=${onClose}>
      <p class="muted">${t("Summaries of each document’s parts, and of these summaries. The method “raptor” searches them beside the passages, for questions about a whole document.")}</p>
      <${Check} label=${t("Rebuild existing trees, too")} checked=${rebuild} onChange=${setRebuild} />
    <//>
  <//>`;
}
