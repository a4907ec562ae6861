/** What gives rights under one name: a role, or a group of rights. */

import { html } from "../../lib/html.js";
import { t } from "../../lib/words.js";
import { Badge, Button } from "../../parts/basics.js";

/** `fixed` tells why it can't be changed; without `onChange` and `onDelete` there are no buttons for that. */
export function RightsCard({ of, parts, fixed, onChange, onDelete }) {
  const buttons = onDelete && html`<${Button} small kind="quiet" icon="edit" aria-label=${t("Change {name}", { name: of.name })} onClick=${onChange} />
    <${Button} small kind="quiet" icon="trash" aria-label=${t("Delete {name}", { name: of.name })} onClick=${onDelete} />`;
  return html`<article class="tile">
    <div class="row tight"><h2 class="grow">${of.name}</h2>${fixed ? html`<${Badge}>${fixed}<//>` : buttons}</div>
    ${of.description && html`<p>${of.description}</p>`}
    <div class="tile-foot">${of.permissions.map((key) => html`<code key=${key}>${key}</code>`)}${parts.map((part) => html`<${Badge} key=${part.id}>${part.name}<//>`)}</div>
  </article>`;
}
