/** One document in its list: its progress, why it failed, what can be done. */

import { html, memo, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { jsonOf } from "../../lib/http.js";
import { Link, go } from "../../lib/router.js";
import { useAction } from "../../lib/resource.js";
import { owns } from "../../lib/session.js";
import { ago, bytes, lengthOf, plural, t } from "../../lib/words.js";
import { Badge, Button, Meter } from "../../parts/basics.js";
import { Icon } from "../../parts/icons.js";
import { Menu, say, sayError } from "../../parts/layers.js";
import { saveBlob } from "../../parts/save.js";
import { DeleteDocument } from "./trash.js";

export const ROW = 62;

/** Download the original bytes. */
export async function download(base, document) {
  const answer = await api.content({ kb_id: base, document_id: document.document_id });
  saveBlob(await answer.blob(), document.filename);
}

/** Read it again: the same bytes are the same document. */
export async function readAgain(base, document) {
  const answer = await api.content({ kb_id: base, document_id: document.document_id });
  const body = new FormData();
  body.append("file", new File([await answer.blob()], document.filename));
  return jsonOf(await api.upload({ kb_id: base, body }));
}

export const Row = memo(({ base, document, job, put, drop, mine, chosen, choose }) => {
  const [deleting, setDeleting] = useState(false);
  const told = (work) => work.catch(sayError);
  const again = useAction(() => told(readAgain(base, document).then((found) => put([found]))));
  const cancel = useAction(() => told(api.cancelJob({ job_id: job.id }).then(() => say(t("It will stop in a moment.")))));
  const address = `/documents/${base}/${document.document_id}`;
  const failed = document.status === "failed";
  return html`<div class="document">
    ${mine && html`<label class="chooser"><input type="checkbox" checked=${chosen} aria-label=${t("Select {name}", { name: document.filename })} onClick=${({ target, shiftKey }) => choose(document.document_id, target.checked, shiftKey)} /></label>`}
    <span class=${`document-icon is-${document.status}`}><${Icon} name=${failed ? "alert" : "documents"} /></span>
    <div class="grow">
      <${Link} class="name clip block" to=${address} title=${document.filename}>${document.filename}<//>
      <small class=${failed ? "bad clip block" : "faint clip block"} title=${document.error ?? ""}>${failed ? document.error : about(document)}</small>
    </div>
    <${State} document=${document} job=${job} />
    ${failed && mine && html`<${Button} small icon="retry" busy=${again.busy} onClick=${again.run}>${t("Try again")}<//>`}
    ${job && owns(job) && document.status === "processing" && html`<${Button} small kind="quiet" icon="close" aria-label=${t("Cancel reading {name}", { name: document.filename })} busy=${cancel.busy || job.cancel_requested} onClick=${cancel.run} />`}
    <${Menu} label=${t("More on {name}", { name: document.filename })} items=${[
      { title: t("Open"), icon: "documents", onSelect: () => go(address) },
      { title: t("Download"), icon: "download", onSelect: () => told(download(base, document)) },
      mine && { title: t("Delete"), icon: "trash", danger: true, onSelect: () => setDeleting(true) },
    ]} />
    ${deleting && html`<${DeleteDocument} base=${base} document=${document} onDeleted=${() => drop(document.document_id)} onRestored=${(found) => put([found])} onClose=${() => setDeleting(false)} />`}
  </div>`;
});

const about = (document) =>
  [bytes(document.size_bytes), lengthOf(document), ago(document.uploaded_at)].filter(Boolean).join(" · ");

export function State({ document, job }) {
  if (document.status === "failed") return html`<${Badge} tone="bad">${t("Failed")}<//>`;
  if (document.status === "completed") return html`${document.notice && html`<span title=${document.notice}><${Badge} tone="warn">${t("Read in part")}<//></span>`}<span class="faint wide-only nowrap">${plural(document.chunk_count, "one passage", "{n} passages")}</span>`;
  const { done = 0, total = null } = job?.progress ?? {};
  const what = document.notice || (job?.status === "running" ? job.message || t("Reading") : t("Waiting"));
  return html`<span class="document-progress">
    <small class="faint clip" title=${what}>${what}</small>
    <${Meter} value=${done} max=${total} label=${t("Reading {name}", { name: document.filename })} />
  </span>`;
}
