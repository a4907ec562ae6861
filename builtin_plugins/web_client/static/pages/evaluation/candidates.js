/** Questions that people asked and rated: each only becomes part of the set if somebody adds it. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction, useResource } from "../../lib/resource.js";
import { t } from "../../lib/words.js";
import { Button, Failure } from "../../parts/basics.js";
import { Field } from "../../parts/forms.js";
import { Icon } from "../../parts/icons.js";

const AT_ONCE = 20;

export function Candidates({ set, onTaken }) {
  const found = useResource((signal) => api.candidates({ set_id: set, query: { limit: AT_ONCE }, signal }), [set]);
  if (found.error) return html`<${Failure} error=${found.error} onRetry=${found.reload} />`;
  if (!found.data?.items.length) return null;
  const taken = () => {
    found.reload();
    onTaken();
  };
  return html`<section class="stack" aria-labelledby="candidates"><h2 id="candidates">${t("Rated answers")}</h2>
    <p class="muted">${t("Questions that people asked and rated. A liked answer expects the passages that it cites; for a disliked one, say what is expected.")}</p>
    <ul class="list">${found.data.items.map((one) => html`<${Candidate} key=${one.turn_id} set=${set} one=${one} onTaken=${taken} />`)}</ul></section>`;
}

function Candidate({ set, one, onTaken }) {
  const [expected, setExpected] = useState("");
  const liked = one.rating === "up";
  const action = useAction(async () => {
    const candidate = { turn_id: one.turn_id, ...(expected.trim() ? { answers: [expected.trim()] } : {}) };
    await api.takeCandidates({ set_id: set, body: { candidates: [candidate] } });
    onTaken();
  });
  return html`<li class="panel">
    <p class="row"><span class=${liked ? "good" : "bad"} role="img" aria-label=${liked ? t("Liked") : t("Disliked")}><${Icon} name=${liked ? "up_thumb" : "down_thumb"} size=${16} /></span><strong>${one.question}</strong></p>
    <p class="muted">${one.answer}</p>
    ${one.comment && html`<p class="passage-text">“${one.comment}”</p>`}
    ${!liked && html`<${Field} label=${t("The answer should contain")} value=${expected} onInput=${setExpected} />`}
    <${Failure} error=${action.error} />
    <div class="row"><${Button} small busy=${action.busy} disabled=${!liked && !expected.trim()} onClick=${action.run}>${t("Add to the set")}<//></div>
  </li>`;
}
