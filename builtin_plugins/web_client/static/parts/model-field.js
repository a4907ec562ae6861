/** A field that names a model for answers, among those that one may use. */

import { html } from "../lib/html.js";
import { api } from "../lib/api.js";
import { useResource } from "../lib/resource.js";
import { t } from "../lib/words.js";
import { Field } from "./forms.js";

/** The models that one may choose; none on a server without the plugin of models. */
export const modelChoices = (signal) =>
  api.modelChoices({ signal }).catch((error) => {
    if (error.status === 404) return { items: [], default: null };
    throw error;
  });

/** Nothing where there is no model to choose. A model that its server no longer lists stays until another is chosen. */
export function ModelField({ label, hint, value, onInput }) {
  const { data } = useResource(modelChoices);
  const models = (data?.items ?? []).map((item) => item.model);
  if (!models.length && !value) return null;
  return html`<${Field} as="select" label=${label} hint=${hint} value=${value} onInput=${onInput}>
    <option value="">${t("Default model")}</option>
    ${[...new Set([...(value ? [value] : []), ...models])].map((model) => html`<option key=${model} value=${model}>${model}</option>`)}
  <//>`;
}
