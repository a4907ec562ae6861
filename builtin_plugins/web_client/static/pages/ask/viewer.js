/** The place of a passage, beside the conversation. */

import { html, useEffect, useLayoutEffect, useRef } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { t } from "../../lib/words.js";
import { Button, Loaded, Notice } from "../../parts/basics.js";
import { useCloseRequest } from "../../parts/layers.js";
import { ChangedSince } from "../documents/difference.js";
import { marksOf } from "../documents/marks.js";
import { Reader } from "../documents/reader.js";

/** A source doesn't name its knowledge base: find the one in the pipeline that has the document. */
async function find(passage, signal) {
  const tries = passage.bases.map(async (base) => ({
    base,
    document: await api.document({ kb_id: base, document_id: passage.document_id, signal }),
  }));
  const found = await Promise.any(tries).catch((error) => {
    throw error.errors?.[0] ?? error;
  });
  return { ...found, passage: { ...passage, text: passage.text || (await textOf(found.base, passage, signal)) } };
}

/** The sources of a stored answer, which the conversation doesn't contain. */
async function textOf(base, passage, signal) {
  const passages = await everything(api.passages, { kb_id: base, document_id: passage.document_id, signal });
  return passages.find((item) => item.chunk_id === passage.chunk_id)?.text ?? "";
}

export function Viewer({ passage, onClose }) {
  const found = useResource((signal) => find(passage, signal), [passage.chunk_id]);
  const box = useRef(null);
  const before = useRef(null); // what opened it gets the focus back
  useEffect(() => {
    if (!box.current.contains(document.activeElement)) before.current = document.activeElement;
    box.current.focus();
  }, [passage]);
  useLayoutEffect(() => {
    const viewer = box.current;
    return () => viewer.contains(document.activeElement) && before.current?.focus();
  }, []);
  useCloseRequest(onClose);
  const keys = (event) => event.key === "Escape" && onClose();
  const [first] = marksOf(passage);
  const where = new URLSearchParams({ from: first.from, to: first.to, ...(passage.page ? { page: passage.page } : {}) });
  return html`<aside class="viewer" tabindex="-1" ref=${box} onKeyDown=${keys} aria-label=${t("Source {n}: {name}", { n: passage.number, name: passage.source })}>
    <header class="viewer-head">
      <span class="source-number">${passage.number}</span>
      <h2 class="clip grow">${passage.source}</h2>
      ${found.data && html`<${Button} small to=${`/documents/${found.data.base}/${passage.document_id}?${where}`}>${t("Open")}<//>`}
      <${Button} kind="quiet" small icon="close" aria-label=${t("Close")} onClick=${onClose} />
    </header>
    <${Loaded} of=${found}>${({ base, document, passage: whole }) => html`${document.status === "superseded" && html`<${Notice} tone="warn" action=${html`<${Button} small to=${`/documents/${base}/${document.document_id}?tab=versions`}>${t("Versions")}<//>`}>${t("This document has changed since.")}<//><${ChangedSince} base=${base} document=${document} passage=${whole} />`}<${Reader} base=${base} document=${document} passage=${whole} />`}<//>
  </aside>`;
}
