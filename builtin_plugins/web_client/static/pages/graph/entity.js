/** One entity: what it is, what it is connected with, and the passages that name it. */

import { html } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { Link } from "../../lib/router.js";
import { t } from "../../lib/words.js";
import { Badge, Button, Loaded } from "../../parts/basics.js";

export function Entity({ base, name, onChoose }) {
  const found = useResource((signal) => api.entityContext({ body: { entity_text: name, context_window: 8 }, signal }), [name]);
  return html`<aside class="panel" aria-label=${name}>
    <div class="row tight"><h2 class="grow">${name}</h2><${Button} kind="quiet" small icon="close" aria-label=${t("Close")} onClick=${() => onChoose("")} /></div>
    <${Loaded} of=${found}>${({ entity, related_entities: related, passages, documents, also_called: names }) => html`
      <p class="row"><${Badge}>${entity.label}<//><span class="muted">${entity.description}</span></p>
      ${names.length > 0 && html`<p class="muted">${t("Also called {names}", { names: [...new Set(names.map((one) => one.text))].join(", ") })}</p>`}
      ${related.length > 0 && html`<h3>${t("Connected with")}</h3>
        <div class="row">${related.slice(0, 16).map((one) => html`<${Button} small key=${one.text} title=${one.predicate} onClick=${() => onChoose(one.text)}>${one.text}<//>`)}</div>`}
      <h3>${t("Named in")}</h3>
      <ul class="list">${passages.map((one) => html`<li key=${`${one.document_id}-${one.char_start}`} class="stack close">
        <p class="passage-text">${one.text}</p>
        <${Link} to=${`/documents/${base.id}/${one.document_id}?from=${one.char_start}&to=${one.char_end}`}>${documents.find((document) => document.id === one.document_id)?.title ?? t("Read it in context")}<//></li>`)}</ul>
    `}<//>
  </aside>`;
}
