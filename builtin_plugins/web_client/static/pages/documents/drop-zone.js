/** Where files are dropped, or chosen: of any name, as the server recognizes them by what they contain. */

import { classes, html, useEffect, useRef, useState } from "../../lib/html.js";
import { t } from "../../lib/words.js";
import { Spinner } from "../../parts/basics.js";
import { Icon } from "../../parts/icons.js";

/** Files of a drop, those in folders included. */
async function filesOf(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return [...transfer.files];
  return (await Promise.all(entries.map(filesIn))).flat();
}

function filesIn(entry) {
  if (entry.isFile) return new Promise((resolve, reject) => entry.file((file) => resolve([file]), reject));
  const reader = entry.createReader();
  const read = () => new Promise((resolve, reject) => reader.readEntries(resolve, reject));
  return (async () => {
    const found = [];
    for (let batch = await read(); batch.length; batch = await read()) found.push(...(await Promise.all(batch.map(filesIn))).flat());
    return found;
  })();
}

/** The whole window takes a drop while this is shown. */
export function DropZone({ onFiles, large, busy }) {
  const [over, setOver] = useState(false);
  const input = useRef(null);
  const latest = useRef(onFiles);
  latest.current = onFiles;
  useEffect(() => {
    const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
    const drag = (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = (event) => event.relatedTarget || setOver(false);
    const drop = async (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(false);
      const found = await filesOf(event.dataTransfer);
      if (found.length) latest.current(found);
    };
    addEventListener("dragover", drag);
    addEventListener("dragleave", leave);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragover", drag);
      removeEventListener("dragleave", leave);
      removeEventListener("drop", drop);
    };
  }, []);
  const choose = (event) => {
    const files = [...event.target.files];
    event.target.value = "";
    if (files.length) onFiles(files);
  };
  return html`<div class=${classes("drop", { over, large })}>
    <input ref=${input} type="file" multiple onChange=${choose} class="hidden" tabindex="-1" aria-hidden="true" />
    <button type="button" disabled=${busy} onClick=${() => input.current.click()}>
      ${busy ? html`<${Spinner} />` : html`<${Icon} name="upload" size=${large ? 28 : 20} />`}
      <strong>${over ? t("Drop them anywhere") : t("Drop files here, or choose them")}</strong>
      <small>${t("PDF, Word, PowerPoint, Excel, OpenDocument, EPUB, RTF, e-mail, HTML, Markdown, text, CSV, JSON, pictures, and ZIP archives of these")}</small>
    </button>
  </div>`;
}
