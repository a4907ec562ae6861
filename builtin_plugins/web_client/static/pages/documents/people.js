/** The list of people who see something. */

import { html, useState } from "../../lib/html.js";
import { isComposing } from "../../lib/keyboard.js";
import { useResource } from "../../lib/resource.js";
import { t } from "../../lib/words.js";
import { Button } from "../../parts/basics.js";
import { Field } from "../../parts/forms.js";
import { knownPeople } from "../../parts/people.js";

/** The people who see something: names and addresses to take away, and a field to add one. */
export function PeopleField({ value, typed, unknown, onChange, onType }) {
  const others = useResource(knownPeople);
  const [list] = useState(() => `people-${Math.random().toString(36).slice(2)}`);
  const isNew = (name) => name && !value.some((one) => one.toLowerCase() === name.toLowerCase());
  const add = () => {
    const name = typed.trim();
    if (isNew(name)) onChange([...value, name]);
    else onType("");
  };
  const keys = (event) => {
    if (event.key !== "Enter" || isComposing(event) || !typed.trim()) return;
    event.preventDefault();
    add();
  };
  return html`<div class="stack close">
    ${value.length > 0 && html`<ul class="people" aria-label=${t("People who see it")}>${value.map(
      (name) => html`<li key=${name} class="row"><span class="grow clip">${name}</span>
        <${Button} small kind="quiet" icon="close" aria-label=${t("Take {name} away", { name })} onClick=${() => onChange(value.filter((one) => one !== name))} /></li>`,
    )}</ul>`}
    <div class="row end"><div class="grow"><${Field} label=${t("Username or e-mail address")} value=${typed} onInput=${onType} onKeyDown=${keys} list=${list} autocomplete="off" autocapitalize="none" spellcheck="false"
      error=${unknown && t("Nobody here has the name “{name}”, or has proven to have this address.", { name: unknown })} /></div>
      <${Button} icon="plus" disabled=${!typed.trim()} onClick=${add}>${t("Add")}<//></div>
    <datalist id=${list}>${(others.data ?? []).filter(([, name]) => isNew(name)).map(([id, name]) => html`<option key=${id} value=${name}></option>`)}</datalist>
  </div>`;
}
