/** Starting a run: which ways of asking are measured. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction, useResource } from "../../lib/resource.js";
import { go } from "../../lib/router.js";
import { number, t } from "../../lib/words.js";
import { Loaded } from "../../parts/basics.js";
import { Check, Count, Form } from "../../parts/forms.js";
import { Dialog } from "../../parts/layers.js";
import { choosable, methodCost, methodTitle } from "../../parts/methods.js";

const MOST = 24;

/** Every combination of what was chosen. */
function configurationsOf({ methods, hybrid, rerank, top_k }) {
  const found = [];
  for (const method of methods)
    for (const words of hybrid)
      for (const again of rerank) found.push({ method, hybrid: words, rerank: again, top_k });
  return found;
}

export function StartRun({ set, onClose }) {
  const offered = useResource((signal) => api.methods({ signal }));
  return html`<${Dialog} title=${t("Measure “{name}”", { name: set.name })} onClose=${onClose}>
    <${Loaded} of=${offered}>${(capabilities) => html`<${Ways} set=${set} offered=${capabilities} onClose=${onClose} />`}<//>
  <//>`;
}

function Ways({ set, offered, onClose }) {
  const names = choosable(offered.methods);
  const [methods, setMethods] = useState(["standard"]);
  const [both, setBoth] = useState(false);
  const [rerank, setRerank] = useState(false);
  const [count, setCount] = useState(10);
  const chosen = configurationsOf({ methods, hybrid: both ? [true, false] : [true], rerank: rerank ? [false, true] : [false], top_k: count });
  const action = useAction(async () => {
    const run = await api.startEvaluation({ body: { set_id: set.id, configurations: chosen } });
    go(`/evaluation/runs/${run.id}`);
  });
  const toggle = (name, on) => setMethods(on ? [...methods, name] : methods.filter((other) => other !== name));
  return html`<${Form} action=${action} submit=${t("Start")} onCancel=${onClose} disabled=${!chosen.length || chosen.length > MOST}>
    <fieldset class="choice"><legend>${t("Methods")}</legend>
      ${names.map((name) => html`<${Check} key=${name} label=${methodTitle(name)} hint=${methodCost(name)} checked=${methods.includes(name)} onChange=${(on) => toggle(name, on)} />`)}
    </fieldset>
    <${Check} label=${t("Also without keyword search")} checked=${both} onChange=${setBoth} />
    ${offered.enhancers.rerank?.available && html`<${Check} label=${t("Also with reranking")} checked=${rerank} onChange=${setRerank} />`}
    <${Count} label=${t("Passages to read")} max=${100} value=${count} onChange=${setCount} />
    <p class=${chosen.length > MOST ? "bad" : "muted"}>${t("{ways} configurations × {questions} questions = {answers} answers", { ways: number(chosen.length), questions: number(set.question_count), answers: number(chosen.length * set.question_count) })}</p>
  <//>`;
}
