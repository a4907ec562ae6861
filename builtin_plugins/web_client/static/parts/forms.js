/** Fields with their labels, hints and errors. */

import { html, useContext, useId, useState } from "../lib/html.js";
import { t } from "../lib/words.js";
import { Button, Failure } from "./basics.js";
import { Leaving, useChanges } from "./changes.js";

/** A labelled field; `as` is input, textarea or select. One to `pick` what a page shows is no wider than a name. */
export function Field({ label, hint, error, as: Kind = "input", children, onInput, optional, pick, ...rest }) {
  const id = useId();
  const told = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ") || undefined;
  const take = (event) => onInput?.(event.target.value);
  return html`<div class=${pick ? "field pick" : "field"}>
    <label for=${id}>${label}${optional && html` <span class="faint">${t("optional")}</span>`}</label>
    <${Kind} id=${id} onInput=${take} aria-describedby=${told} aria-invalid=${error ? "true" : undefined} ...${rest}>${children}<//>
    ${hint && html`<p class="hint" id=${`${id}-hint`}>${hint}</p>`}
    ${error && html`<p class="hint bad" id=${`${id}-error`}>${error}</p>`}
  </div>`;
}

/** A whole number from 1 to `max`. The field shows what is being typed, and afterwards the effective value. */
export function Count({ max, value, onChange, ...rest }) {
  const [typed, setTyped] = useState(null);
  const take = (text) => {
    setTyped(text);
    const count = Math.trunc(Number(text));
    if (count) onChange(Math.min(Math.max(count, 1), max));
  };
  return html`<${Field} ...${rest} type="number" min="1" max=${max} value=${typed ?? value} onInput=${take} onBlur=${() => setTyped(null)} />`;
}

/** A choice of a few, all shown. */
export function Choice({ legend, options, value, onChange, name }) {
  const id = useId();
  return html`<fieldset class="choice">
    <legend>${legend}</legend>
    ${options.map(
      (option) => html`<label key=${option.value} class="option">
        <input type="radio" name=${name ?? id} value=${option.value} checked=${option.value === value} onChange=${() => onChange(option.value)} />
        <span><strong>${option.title}</strong>${option.about && html`<small>${option.about}</small>`}</span>
      </label>`,
    )}
  </fieldset>`;
}

export function Check({ label, hint, checked, onChange, ...rest }) {
  return html`<label class="option">
    <input type="checkbox" checked=${checked} onChange=${(event) => onChange(event.target.checked)} ...${rest} />
    <span>${label}${hint && html`<small>${hint}</small>`}</span>
  </label>`;
}

/** A form: Enter sends it, its error stands above its buttons. What was entered isn't dropped silently. */
export function Form({ action, submit, submitKind = "primary", onCancel, children, disabled, ...rest }) {
  const leave = useContext(Leaving);
  const box = useChanges(action.busy || submitKind === "danger", action.error);
  const take = (event) => {
    event.preventDefault();
    if (!action.busy && !disabled) action.run();
  };
  return html`<form class="form" ref=${box} onSubmit=${take} ...${rest}>
    ${children}
    <${Failure} error=${action.error} />
    <div class="form-actions">
      ${onCancel && html`<${Button} onClick=${() => leave(onCancel)}>${t("Cancel")}<//>`}
      <${Button} type="submit" kind=${submitKind} busy=${action.busy} disabled=${disabled}>${submit}<//>
    </div>
  </form>`;
}
