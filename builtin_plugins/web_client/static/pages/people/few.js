/** People of a large group: a field to find them by, and only the first ones, as thousands of rows take seconds to draw. */

import { html, useState } from "../../lib/html.js";
import { number, t } from "../../lib/words.js";
import { Button } from "../../parts/basics.js";

const AT_ONCE = 100;
const FEW = 20;

/** {shown, search, more}: the people to show, what goes above their table, and what goes below it. */
export function useFew(people) {
  const [text, setText] = useState("");
  const [most, setMost] = useState(AT_ONCE);
  const wanted = text.trim().toLowerCase();
  const fitting = people.filter(({ username, email }) => `${username} ${email}`.toLowerCase().includes(wanted));
  const shown = fitting.slice(0, most);
  const search = (people.length > FEW || text) && html`<div class="filters">
    <input class="input search" type="search" placeholder=${t("Find by name or e-mail")} aria-label=${t("Find by name or e-mail")} value=${text} onInput=${(event) => setText(event.target.value)} /></div>`;
  const more = shown.length < fitting.length && html`<div class="row center">
    <span class="muted">${t("{from} to {to} of {total}", { from: number(1), to: number(shown.length), total: number(fitting.length) })}</span>
    <${Button} onClick=${() => setMost(most + AT_ONCE)}>${t("Show more")}<//></div>`;
  const none = !fitting.length && html`<p class="muted" role="status">${t("Nobody matches.")}</p>`;
  return { shown, search, more: more || none };
}
