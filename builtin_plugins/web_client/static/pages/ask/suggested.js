/** First questions about the latest documents of what is asked, from their headings. */

import { html } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { t } from "../../lib/words.js";
import { Button } from "../../parts/basics.js";

const SHOWN = 4;
const MOST_BASES = 4;

/** Topics of each knowledge base in turn. */
async function load(bases, signal) {
  const found = await Promise.allSettled(bases.slice(0, MOST_BASES).map((base) => api.topics({ kb_id: base, query: { limit: SHOWN }, signal })));
  const lists = found.map((result) => result.value?.items ?? []);
  return Array.from({ length: SHOWN }, (_, place) => lists.map((list) => list[place])).flat().filter(Boolean).slice(0, SHOWN);
}

/** A file's name as people say it. */
const titleOf = (filename) => filename.replace(/\.[^.]{1,5}$/, "").replaceAll("_", " ");

function questionOf({ heading, filename, is_title: isTitle, is_question: isQuestion }) {
  if (isQuestion) return heading;
  return isTitle ? t("What is “{title}” about?", { title: heading }) : t("What does “{title}” say about “{heading}”?", { title: titleOf(filename), heading });
}

export function Suggested({ bases, onAsk }) {
  const found = useResource((signal) => load(bases, signal), [bases.join()]);
  if (!found.data?.length) return null;
  return html`<section class="suggested" aria-label=${t("Suggestions")}>
    ${found.data.map((topic) => html`<${Button} key=${topic.document_id + topic.heading} onClick=${() => onAsk(questionOf(topic))}>${questionOf(topic)}<//>`)}
  </section>`;
}
