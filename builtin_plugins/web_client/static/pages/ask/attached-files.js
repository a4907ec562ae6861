/** The files attached to a question, beside its box: their states, and what the question waits for. */

import { classes, html, useEffect, useRef, useState } from "../../lib/html.js";
import { usePolling } from "../../lib/resource.js";
import { go, path } from "../../lib/router.js";
import { lengthOf, plural, t } from "../../lib/words.js";
import { Button, Spinner } from "../../parts/basics.js";
import { Icon } from "../../parts/icons.js";
import { say, sayError } from "../../parts/layers.js";
import { anyFailed, attach, attachments, beingRead, detach, isPartlyRead, lookAgain, onlyAttachments, showAttachments, stateOf, unread } from "./attachments.js";
import { answering, current, kept } from "./conversation.js";

const PAUSE = 1500;

/** The button that chooses files. */
export function AttachButton({ onFiles }) {
  const input = useRef(null);
  const choose = ({ target }) => {
    const files = [...target.files];
    target.value = "";
    if (files.length) onFiles(files);
  };
  return html`<input ref=${input} type="file" multiple onChange=${choose} class="hidden" tabindex="-1" aria-hidden="true" />
    <${Button} kind="quiet" small icon="attach" aria-label=${t("Attach files")} onClick=${() => input.current.click()} />`;
}

/** Attach files to the conversation, which gets its address with them: a reload keeps them. */
export function attachFiles(files) {
  attach(files).catch(sayError);
  if (kept.value && current.value && path.value !== `/ask/${current.value}`) go(`/ask/${current.value}`, { replace: true });
}

/**
 * [isWaiting, ask, stop]: `ask` calls `send` once all attached files have been read, or at once if `now`; not while one
 * could not be read.
 */
export function useAttachments(send) {
  const [isWaiting, setWaiting] = useState(false);
  useEffect(() => {
    setWaiting(false);
    showAttachments(current.value).catch(sayError);
  }, [current.value]);
  usePolling(() => lookAgain().catch(() => {}), PAUSE, beingRead.value);
  const ask = (now = false) => {
    setWaiting(false);
    if (anyFailed.value) say(t("A file could not be attached. Remove it, then ask."), "bad");
    else if (unread.value && !now) setWaiting(true);
    else send();
  };
  useEffect(() => {
    if (!isWaiting) return;
    // Without its only file, it would be another question.
    if (anyFailed.value || !attachments.value.length) setWaiting(false);
    else if (!unread.value && !answering.value) ask();
  }, [isWaiting, unread.value, anyFailed.value, answering.value]);
  return [isWaiting, ask, () => setWaiting(false)];
}

export function AttachedFiles({ isWaiting, onAsk, onStop }) {
  const items = attachments.value;
  const box = useRef(null);
  if (!items.length) return null;
  const remove = (item) => {
    detach(item).catch((error) => error.status === 404 || sayError(error));
    // The button is gone: whoever uses the keyboard goes on with the question.
    box.current.closest(".composer-inside").querySelector("textarea").focus();
  };
  return html`<div class="attached" ref=${box}>
    <ul aria-label=${t("Attached files")}>${items.map((item) => html`<${File} key=${item.key} item=${item} onRemove=${() => remove(item)} />`)}</ul>
    <p class="faint">${onlyAttachments.value ? plural(items.length, "Answers come from this file alone.", "Answers come from these files alone.") : plural(items.length, "Answers come from this file and from the source below.", "Answers come from these files and from the source below.")}</p>
    <div class="row" role="status">
      ${isWaiting && html`<span class="waiting"><${Spinner} />${plural(items.length, "Your question waits until the file has been read.", "Your question waits until the files have been read.")}</span>
        ${isPartlyRead.value && html`<${Button} small onClick=${() => onAsk(true)}>${t("Ask now")}<//>`}
        <${Button} small kind="quiet" onClick=${onStop}>${t("Cancel")}<//>`}
    </div>
  </div>`;
}

function File({ item, onRemove }) {
  const { name, document, error } = item;
  const state = stateOf(item);
  const why = error?.message ?? document?.error;
  return html`<li class=${classes("attached-file", { "is-failed": state === "failed" })}>
    <${Icon} name=${state === "failed" ? "alert" : "documents"} size=${16} />
    <span class="grow"><span class="clip block" title=${name}>${name}</span>
      <small class=${state === "failed" ? "bad block" : "faint block"} role=${state === "failed" ? "alert" : undefined}>${state === "failed" ? why : progressOf(state, document)}</small>
      ${error?.said && html`<small class="bad block" lang="en">${error.said}</small>`}
    </span>
    <${Button} small kind="quiet" icon="close" aria-label=${t("Remove {name}", { name })} onClick=${onRemove} />
  </li>`;
}

function progressOf(state, document) {
  if (state === "sending") return t("Sending …");
  if (state === "read") return document.notice || lengthOf(document) || t("Has been read");
  return document.searchable_count ? plural(document.searchable_count, "Reading … one passage can be asked", "Reading … {n} passages can be asked") : t("Reading …");
}
