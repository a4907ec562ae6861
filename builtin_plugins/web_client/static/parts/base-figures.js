/** How often knowledge bases were asked, for those who may change them. */

import { html } from "../lib/html.js";
import { api } from "../lib/api.js";
import { useResource } from "../lib/resource.js";
import { t } from "../lib/words.js";
import { Loaded } from "./basics.js";
import { LATEST, QuestionDays } from "./question-days.js";

/** Of one knowledge base, or of all that the person may change; `none` is shown if nothing was asked. */
export function BaseFigures({ base, none = null }) {
  const query = base ? { days: LATEST, knowledge_base_id: base } : { days: LATEST };
  const found = useResource((signal) => api.questionFigures({ query, signal }), [base]);
  return html`<${Loaded} of=${found}>${({ items }) => (items.length ? html`<${QuestionDays} days=${items.map((one) => ({ ...one, answered: one.questions - one.refused }))} />
    <p class="faint">${t("Counted without what was asked, and by whom. A question to several knowledge bases counts in each.")}</p>` : none)}<//>`;
}
