/** A line shown while the API is unreachable. */

import { html } from "../lib/html.js";
import { unreachable } from "../lib/http.js";
import { t } from "../lib/words.js";
import { Spinner } from "./basics.js";

export function Outage() {
  if (!unreachable.value) return null;
  return html`<div class="outage" role="alert"><${Spinner} />${t("The server doesn’t answer. Trying again; nothing you typed is lost.")}</div>`;
}
