/** Where a question is typed. */

import { html, useEffect, useRef, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { isComposing } from "../../lib/keyboard.js";
import { useResource } from "../../lib/resource.js";
import { plural, t } from "../../lib/words.js";
import { Button, Loaded } from "../../parts/basics.js";
import { pastedFiles, useFileDrop } from "../../parts/file-drop.js";
import { Check, Count, Field } from "../../parts/forms.js";
import { Icon } from "../../parts/icons.js";
import { choosable, methodAbout, methodCost, methodTitle } from "../../parts/methods.js";
import { Choices as Narrowed, Facets, filterOf } from "../documents/narrow.js";
import { AttachButton, AttachedFiles, attachFiles, useAttachments } from "./attached-files.js";
import { attachedFields, attachments, onlyAttachments } from "./attachments.js";
import { answering, stopAnswer } from "./conversation.js";
import { useDraft } from "./drafts.js";
import { chosenModel, ModelPicker } from "./models.js";
import { basesOf, pipelinesOffered } from "./sources.js";
import { Microphone } from "./voice.js";

const TALLEST = 220;
const LONGEST = 8000;
const FILES = "files"; // what no pipeline and no knowledge base is

export function Composer({ conversation, sources, choice, onChoose, onSend }) {
  const [text, setText] = useDraft(conversation);
  const [settings, setSettings] = useState({});
  const [open, setOpen] = useState(false);
  const [isNarrowing, setNarrowing] = useState(false);
  const [choices, setChoices] = useState([]);
  useEffect(() => setChoices([]), [basesOf(choice, sources).join()]);
  const box = useRef(null);
  useEffect(() => {
    if (matchMedia("(pointer: fine)").matches) box.current.focus();
  }, []);
  useEffect(() => {
    box.current.style.height = "auto";
    box.current.style.height = `${Math.min(box.current.scrollHeight, TALLEST)}px`;
  }, [text]);
  const isNarrowed = !attachments.value.length || !onlyAttachments.value;
  const send = async () => {
    const question = text.trim();
    if (!question || answering.value || !choice) return;
    setText("");
    const { as_of, ...others } = settings;
    const narrowing = isNarrowed ? { as_of, metadata_filter: filterOf(choices) } : {};
    try {
      await onSend(question, { ...others, ...(chosenModel.value ? { llm_model: chosenModel.value } : {}), ...narrowing, ...attachedFields() });
    } catch {
      setText(question);
    }
  };
  const [isWaiting, ask, stopWaiting] = useAttachments(send);
  const keys = (event) => {
    if (event.key !== "Enter" || event.shiftKey || isComposing(event)) return;
    event.preventDefault();
    if (text.trim()) ask();
  };
  const over = useFileDrop(attachFiles);
  const paste = (event) => {
    const files = pastedFiles(event.clipboardData);
    if (!files.length) return;
    event.preventDefault();
    attachFiles(files);
  };
  return html`<div class=${over ? "composer over" : "composer"}>
    <div class="composer-inside">
      ${open && html`<${Options} value=${settings} onChange=${setSettings} />`}
      ${isNarrowing && isNarrowed && choice && html`<div class="options one"><${Facets} bases=${basesOf(choice, sources)} pipeline=${choice.startsWith("pipeline:") ? choice.slice(9) : ""} choices=${choices} onChange=${setChoices} /><${AsOf} value=${settings.as_of} onChange=${(as_of) => setSettings((was) => ({ ...was, as_of }))} /></div>`}
      ${isNarrowed && choices.length > 0 && html`<div class="options one"><${Narrowed} choices=${choices} onChange=${setChoices} /></div>`}
      <textarea ref=${box} rows="1" maxlength=${LONGEST} aria-label=${t("Your question")} placeholder=${t("Ask your documents …")}
        value=${text} onInput=${(event) => setText(event.target.value)} onKeyDown=${keys} onPaste=${paste}></textarea>
      <${AttachedFiles} isWaiting=${isWaiting} onAsk=${ask} onStop=${stopWaiting} />
      <div class="composer-foot">
        <${SourceChoice} sources=${sources} value=${choice} onChange=${onChoose} />
        <${ModelPicker} />
        <${Button} kind="quiet" small icon="settings" aria-label=${t("How to answer")} aria-expanded=${open} onClick=${() => setOpen(!open)} />
        ${isNarrowed && html`<${Button} kind="quiet" small icon="search" aria-label=${t("Ask only some documents")} aria-expanded=${isNarrowing} onClick=${() => setNarrowing(!isNarrowing)} />`}
        <${AttachButton} onFiles=${attachFiles} />
        <span class="grow"></span>
        <${Microphone} onText=${(words) => setText((was) => [was.trim(), words].filter(Boolean).join(" "))} />
        ${
          answering.value
            ? html`<${Button} kind="primary" icon="stop" aria-label=${t("Stop")} onClick=${stopAnswer} />`
            : html`<${Button} kind="primary" icon="send" aria-label=${t("Ask")} busy=${isWaiting} disabled=${!text.trim() || !choice} onClick=${() => ask()} />`
        }
      </div>
    </div>
  </div>`;
}

/** The day whose versions of documents are asked. */
function AsOf({ value, onChange }) {
  const today = new Date().toISOString().slice(0, 10);
  return html`<${Field} label=${t("As of")} type="date" max=${today} value=${value ?? ""} onInput=${(date) => onChange(date || undefined)} hint=${t("Answers from the versions that were current on this day.")} optional />`;
}

/** What is asked; attached files are asked alone, or beside it. */
function SourceChoice({ sources, value, onChange }) {
  const files = attachments.value.length;
  const pipelines = pipelinesOffered(sources, value);
  const choose = ({ target }) => {
    onlyAttachments.value = target.value === FILES;
    if (target.value !== FILES) onChange(target.value);
  };
  return html`<label class="source-choice"><${Icon} name="documents" size=${16} /><span class="hidden">${t("What to ask")}</span>
    <select value=${files && onlyAttachments.value ? FILES : value} onChange=${choose}>
      ${files > 0 && html`<option value=${FILES}>${plural(files, "Only the attached file", "Only the attached files")}</option>`}
      ${pipelines.length > 0 && html`<optgroup label=${t("Pipelines")}>
        ${pipelines.map((item) => html`<option key=${item.id} value=${`pipeline:${item.id}`}>${item.name}</option>`)}
      </optgroup>`}
      ${sources.alone.length > 0 && html`<optgroup label=${t("Knowledge bases")}>
        ${sources.alone.map((base) => html`<option key=${base.id} value=${`base:${base.id}`}>${base.name}</option>`)}
      </optgroup>`}
    </select>
  </label>`;
}

/** The optional features of this server; only those that it has are offered. */
function Options({ value, onChange }) {
  const offered = useResource((signal) => api.methods({ signal }));
  return html`<${Loaded} of=${offered} lines=${2}>${(found) => html`<${Choices} offered=${found} value=${value} onChange=${onChange} />`}<//>`;
}

function Choices({ offered: { methods, enhancers, retrievers }, value, onChange }) {
  const names = choosable(methods);
  const method = value.method ?? "standard";
  const set = (changes) => onChange({ ...value, ...changes });
  return html`<div class="options">
    ${names.length > 1 && html`<${Field} as="select" label=${t("Method")} value=${method} onInput=${(name) => set({ method: name })} hint=${[methodAbout(method), methodCost(method)].join(" ").trim()}>
      ${names.map((name) => html`<option value=${name}>${methodTitle(name)}</option>`)}
    <//>`}
    <${Count} label=${t("Passages to read")} max=${50} value=${value.top_k ?? 5} onChange=${(top_k) => set({ top_k })} />
    <div>
      ${retrievers.hybrid?.available && html`<${Check} label=${t("Also search by keywords")} checked=${value.hybrid ?? true} onChange=${(hybrid) => set({ hybrid })} />`}
      ${enhancers.rerank?.available && html`<${Check} label=${t("Rerank")} checked=${value.rerank ?? false} onChange=${(rerank) => set({ rerank })} />`}
      ${enhancers.compress?.available && html`<${Check} label=${t("Shorten passages")} checked=${value.compress ?? false} onChange=${(compress) => set({ compress })} />`}
      ${retrievers.parent_child?.available && html`<${Check} label=${t("Include the surrounding text")} checked=${value.parent_context ?? false} onChange=${(on) => set({ parent_context: on })} />`}
    </div>
  </div>`;
}
