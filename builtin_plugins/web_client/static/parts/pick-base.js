/** Choosing the knowledge base that a page shows; its id is in the address. */

import { html } from "../lib/html.js";
import { query } from "../lib/router.js";
import { ownFirst } from "../lib/session.js";
import { t } from "../lib/words.js";
import { Notice } from "./basics.js";
import { Field } from "./forms.js";

/** The one in the address, undefined if it isn't in the list; without any, the first that fits best, one's own first. */
export function baseIn(list, fits = () => true) {
  const wanted = query.value.get("base");
  if (wanted) return list.find((item) => item.id === wanted);
  const sorted = ownFirst(list);
  return sorted.find(fits) ?? sorted[0];
}

export const PickBase = ({ list, base, onPick }) => html`
  <${Field} as="select" pick label=${t("Knowledge base")} value=${base?.id ?? ""} onInput=${onPick}>
    ${!base && html`<option value="" disabled>${t("Choose one")}</option>`}
    ${list.map((item) => html`<option key=${item.id} value=${item.id}>${item.name}</option>`)}
  <//>
  ${!base && html`<${Notice} tone="warn" title=${t("There is no such knowledge base")}>${t("It was deleted, or you can’t see it. Choose another one.")}<//>`}`;
