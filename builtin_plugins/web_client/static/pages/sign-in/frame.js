/** The frame of views that need no account: one card in the middle. */

import { html, useEffect, useRef } from "../../lib/html.js";
import { LANGUAGES, chooseLanguage, language, nameOfLanguage, t } from "../../lib/words.js";
import { Icon } from "../../parts/icons.js";

export function Card({ title, about, children, foot }) {
  const box = useRef(null);
  // The browser itself does so only when a page is loaded, not after signing out.
  useEffect(() => box.current.querySelector("[autofocus]")?.focus(), []);
  return html`<div class="door">
    <main class="card" ref=${box}>
      <div class="brand"><span class="mark" aria-hidden="true"><${Icon} name="menu" size=${16} /></span><span>Platform</span></div>
      <h1>${title}</h1>
      ${about && html`<p class="muted">${about}</p>`}
      ${children}
    </main>
    <footer class="door-foot">
      ${foot}
      <label class="language"><span class="hidden">${t("Language")}</span>
        <select value=${language.value} onChange=${(event) => chooseLanguage(event.target.value)}>
          ${LANGUAGES.map((code) => html`<option value=${code} lang=${code}>${nameOfLanguage(code)}</option>`)}
        </select>
      </label>
    </footer>
  </div>`;
}
