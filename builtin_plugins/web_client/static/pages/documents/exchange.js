/** A knowledge base as one file: to keep, or to carry to another server. */

import { html, useEffect, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { received } from "../../lib/http.js";
import { useAction, usePolling } from "../../lib/resource.js";
import { go } from "../../lib/router.js";
import { bytes, t } from "../../lib/words.js";
import { Button, Failure, Meter, Notice, Spinner } from "../../parts/basics.js";
import { Field, Form } from "../../parts/forms.js";
import { Dialog, say } from "../../parts/layers.js";
import { saveBlob } from "../../parts/save.js";

const PAUSE = 1_000;
/** Forbidden in file names by one system or another. */
const FORBIDDEN = /[\\/:*?"<>|\p{Cc}]/gu;
/** How a zip archive's last record begins; it is 22 bytes long if the archive has no comment. */
const END = [0x50, 0x4b, 0x05, 0x06];

/** A signal that is aborted when the component is removed. */
function useStop() {
  const [stop] = useState(() => new AbortController());
  useEffect(() => () => stop.abort(), []);
  return stop.signal;
}

/** Ask before the browser's tab is closed while `active`. */
function useStaying(active) {
  useEffect(() => {
    if (!active) return undefined;
    const stay = (event) => event.preventDefault();
    addEventListener("beforeunload", stay);
    return () => removeEventListener("beforeunload", stay);
  }, [active]);
}

/** Without the plugin there are no such routes; a missing knowledge base has a code of its own. */
function explain(error) {
  if (["not_found", "method_not_allowed"].includes(error.code)) error.message = t("This server can neither export nor import knowledge bases: the plugin “rag_exchange” is missing or turned off.");
  throw error;
}

async function isComplete(file) {
  const end = new Uint8Array(await file.slice(-22).arrayBuffer());
  return END.every((byte, index) => end[index] === byte);
}

export function ExportBase({ base, onClose }) {
  const stop = useStop();
  const [arrived, setArrived] = useState("");
  const action = useAction(async () => {
    setArrived("");
    const answer = await api.exportKnowledgeBase({ kb_id: base.id, signal: stop }).catch(explain);
    const file = await received(answer, (count) => setArrived(bytes(count)));
    if (!(await isComplete(file))) throw new Error(t("The server stopped before the file was complete. Try again; if it happens again, look at the server’s log."));
    saveBlob(file, `${base.name.replace(FORBIDDEN, "-").slice(0, 100)}.kb.zip`);
    onClose();
    say(t("Exported"));
  });
  useStaying(action.busy);
  return html`<${Dialog} title=${t("Export “{name}”", { name: base.name })} onClose=${onClose} closable=${!action.busy}>
    <${Form} action=${action} submit=${t("Export")} onCancel=${onClose}>
      <p>${t("Downloads one file with the settings, the original documents, their passages and vectors, and the sets of questions for evaluation.")}</p>
      <p class="muted">${t("To copy the knowledge base to another server, choose “Import” under Documents there. Conversations, pipelines, and who can see it are not included.")}</p>
      ${action.busy && html`<p class="row" role="status"><${Spinner} />${arrived ? t("{size} so far …", { size: arrived }) : t("The server is preparing the file …")}</p>`}
    <//>
  <//>`;
}

export function ImportBase({ onClose }) {
  const stop = useStop();
  const [file, setFile] = useState(null);
  const [job, setJob] = useState(null);
  const action = useAction(async () => {
    const body = new FormData();
    body.append("file", file);
    const { job_id, knowledge_base_id } = await api.importKnowledgeBase({ body, signal: stop }).catch(explain);
    setJob({ id: job_id, subject: knowledge_base_id, status: "queued" });
  });
  const choose = (chosen) => {
    action.clear();
    setJob(null);
    setFile(chosen);
  };
  useStaying(action.busy);
  return html`<${Dialog} title=${t("Import a knowledge base")} onClose=${onClose} closable=${!action.busy}>
    ${job ? html`<${Progress} job=${job} onClose=${onClose} onAgain=${() => choose(null)} />` : html`<${Send} action=${action} file=${file} onChoose=${choose} onClose=${onClose} />`}
  <//>`;
}

function Send({ action, file, onChoose, onClose }) {
  const wrong = action.error?.fields?.file;
  return html`<${Form} action=${wrong ? { ...action, error: null } : action} submit=${t("Import")} onCancel=${onClose} disabled=${!file}>
    <p>${t("Choose a file that was exported from a knowledge base, on this server or another. The new knowledge base is yours and private.")}</p>
    <${Field} label=${t("Exported file")} type="file" accept=".zip,application/zip" onChange=${({ target }) => onChoose(target.files[0] ?? null)} disabled=${action.busy} required autofocus />
    ${wrong && html`<${Refused} reason=${wrong} />`}
    ${action.busy && html`<p class="row" role="status"><${Spinner} />${t("Sending {size} …", { size: bytes(file.size) })}</p>`}
  <//>`;
}

const Refused = ({ reason }) => html`<${Notice} tone="bad" title=${t("This file can’t be imported")}>
  <p>${t("The server says: {reason}.", { reason })}</p><p>${t("Export the knowledge base once more, and choose the new file.")}</p><//>`;

/** An import that ended early: its knowledge base is removed. */
export const Unmade = ({ job }) =>
  job.status === "failed" ? html`<${Refused} reason=${job.error} />` : html`<${Notice} tone="warn" title=${t("The import was cancelled")}>${t("Nothing was kept.")}<//>`;

/** The import itself, which runs as a job: it goes on if this is closed. */
function Progress({ job: begun, onClose, onAgain }) {
  const [job, setJob] = useState(begun);
  const [error, setError] = useState(null);
  const going = !["done", "failed", "cancelled"].includes(job.status);
  const look = async () => {
    const found = await api.job({ job_id: begun.id });
    setError(null);
    if (found.status !== "done") return setJob(found);
    go(`/documents/${begun.subject}`);
    return say(t("Imported"));
  };
  usePolling(() => look().catch(setError), PAUSE, going);
  if (!going) {
    return html`<div class="stack">
      <${Unmade} job=${job} />
      <div class="form-actions"><${Button} onClick=${onClose}>${t("Close")}<//><${Button} kind="primary" onClick=${onAgain}>${t("Choose another file")}<//></div>
    </div>`;
  }
  const { done = 0, total = null } = job.progress ?? {};
  return html`<div class="stack" role="status">
    <p>${total ? t("{done} of {total} documents are imported.", { done, total }) : t("The file has arrived. The import begins …")}</p>
    <${Meter} value=${done} max=${total} label=${t("The knowledge base is being imported")} />
    <p class="muted">${t("You can close this: the import goes on, and the knowledge base appears under Documents.")}</p>
    <${Failure} error=${error} />
    <div class="form-actions"><${Button} onClick=${onClose}>${t("Close")}<//></div>
  </div>`;
}
