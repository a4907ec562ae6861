/** Where files are dropped or chosen: with any name, as the server recognizes them by content. */

import { classes, html, useRef } from "../../lib/html.js";
import { t } from "../../lib/words.js";
import { Button, Spinner } from "../../parts/basics.js";
import { folderFiles, useFileDrop } from "../../parts/file-drop.js";
import { Icon } from "../../parts/icons.js";

/** Whether this browser lets people choose a folder. */
const FOLDERS = "webkitdirectory" in HTMLInputElement.prototype;

/** The whole window accepts drops while this is shown. */
export function DropZone({ onFiles, large, busy }) {
  const over = useFileDrop(onFiles);
  const input = useRef(null);
  const choose = (event) => {
    const { webkitdirectory } = event.target;
    const files = [...event.target.files];
    event.target.value = "";
    const meant = webkitdirectory ? folderFiles(files) : files;
    if (meant.length) onFiles(meant);
  };
  const open = (webkitdirectory) => {
    input.current.webkitdirectory = webkitdirectory;
    input.current.click();
  };
  return html`<div class=${classes("drop", { over, large })}>
    <input ref=${input} type="file" multiple onChange=${choose} class="hidden" tabindex="-1" aria-hidden="true" />
    <button type="button" class="drop-files" disabled=${busy} onClick=${() => open(false)}>
      ${busy ? html`<${Spinner} />` : html`<${Icon} name="upload" size=${large ? 28 : 20} />`}
      <strong>${over ? t("Drop them anywhere") : t("Drop files here, or choose them")}</strong>
      <small>${t("PDF, Word, PowerPoint, Excel, OpenDocument, EPUB, RTF, e-mail, HTML, Markdown, text, CSV, JSON, subtitles, notebooks, pictures, and archives of these (ZIP, tar)")}</small>
    </button>
    ${FOLDERS && html`<${Button} kind="quiet" small icon="upload" disabled=${busy} onClick=${() => open(true)}>${t("Upload a folder")}<//>`}
  </div>`;
}
