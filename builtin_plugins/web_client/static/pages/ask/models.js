/** Which model answers: chosen beside the question, and where to connect one if there is none. */

import { html, signal, useEffect } from "../../lib/html.js";
import { useResource } from "../../lib/resource.js";
import { Link } from "../../lib/router.js";
import { isAdmin, onNextAccount } from "../../lib/session.js";
import { t } from "../../lib/words.js";
import { Icon } from "../../parts/icons.js";
import { modelChoices } from "../../parts/model-field.js";

/** The model chosen for the questions of this tab; empty for the usual one. */
export const chosenModel = signal("");

onNextAccount(() => {
  chosenModel.value = "";
});

export function ModelPicker() {
  const { data } = useResource(modelChoices);
  useEffect(() => {
    if (data && !data.items.some((item) => item.model === chosenModel.value)) chosenModel.value = "";
  }, [data]);
  if (!data?.items.length) return null;
  const usual = data.items.find((item) => item.model === data.default);
  return html`<label class="source-choice"><${Icon} name="operations" size=${16} /><span class="hidden">${t("Which model answers")}</span>
    <select value=${chosenModel.value} onChange=${(event) => { chosenModel.value = event.target.value; }}>
      <option value="">${usual ? t("Default model: {name}", { name: usual.name }) : t("Default model")}</option>
      ${data.items.map((item) => html`<option key=${item.model} value=${item.model}>${item.name}</option>`)}
    </select>
  </label>`;
}

/** Below an answer of quotations, where no model answers: the way to one. */
export function ModelOffer() {
  const { data } = useResource(modelChoices);
  if (!data || data.default) return null;
  return html`<p class="faint">${t("A model would write an answer from these.")} ${isAdmin.value ? html`<${Link} to="/operations/models">${t("Connect a model")}<//>` : t("Ask an administrator to connect one.")}</p>`;
}
