/** What a collection is about: topics, with sentences of the documents themselves. */

import { html } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { plural, t } from "../../lib/words.js";
import { Badge, Empty, Loaded } from "../../parts/basics.js";

export function Topics({ base }) {
  const found = useResource((signal) => api.graphOverview({ body: { kb_id: base.id, limit: 12 }, signal }), [base.id]);
  return html`<${Loaded} of=${found}>${({ topics }) =>
    topics.length
      ? html`<div class="stack">${topics.map((topic) => html`<article class="panel" key=${topic.title}>
          <div class="row"><h2 class="grow">${topic.title}</h2><span class="muted">${plural(topic.documents.length, "One document", "{n} documents")}</span></div>
          <p>${topic.summary}</p>
          <div class="row">${topic.entities.slice(0, 12).map((name) => html`<${Badge} key=${name}>${name}<//>`)}</div>
        </article>`)}</div>`
      : html`<${Empty} icon="graph" title=${t("No topics yet")}>${t("Topics appear once several documents name the same things.")}<//>`
  }<//>`;
}
