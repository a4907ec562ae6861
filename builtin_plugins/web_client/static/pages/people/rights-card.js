/** What gives rights under one name: a role, or a group of rights. */

import { html } from "../../lib/html.js";
import { t } from "../../lib/words.js";
import { Badge, Button } from "../../parts/basics.js";

/** `fixed` says why it can't be deleted; without `onDelete` there is no button for that. */
export function RightsCard({ of, parts, fixed, onDelete }) {
  const remove = onDelete && html`<${Button} small kind="quiet" icon="trash" aria-label=${t("Delete {name}", { name: of.name })} onClick=${onDelete} />`;
  return html`<article class="tile">
    <div class="row tight"><h2 class="grow">${of.name}</h2>${fixed ? html`<${Badge}>${fixed}<//>` : remove}</div>
    ${of.description && html`<p>${of.description}</p>`}
    <div class="tile-foot">${of.permissions.map((key) => html`<code key=${key}>${key}</code>`)}${parts.map((part) => html`<${Badge} key=${part.id}>${part.name}<//>`)}</div>
  </article>`;
}
