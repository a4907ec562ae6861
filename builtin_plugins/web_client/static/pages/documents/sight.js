/** Looking at a knowledge base as another member: whether they see it, and why. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { t } from "../../lib/words.js";
import { Loaded, Notice } from "../../parts/basics.js";
import { Field } from "../../parts/forms.js";
import { Dialog } from "../../parts/layers.js";
import { knownPeople } from "../../parts/people.js";

const WHY = {
  owner: "The knowledge base is theirs.",
  administrator: "Administrators of this server see everything.",
  everyone: "Every account on this server sees it.",
  team: "It is shared with a team that they belong to.",
  organization: "It is shared with an organization that they belong to.",
  private: "It is private: only its owner and administrators see it.",
  not_in_team: "It is shared with a team that they don’t belong to.",
  not_in_organization: "It is shared with an organization that they don’t belong to or are suspended in.",
  inactive: "The account is deactivated and can’t sign in.",
};

export function LookAs({ base, onClose }) {
  const known = useResource(knownPeople);
  const [chosen, setChosen] = useState("");
  return html`<${Dialog} title=${t("View as another member")} onClose=${onClose}>
    <${Loaded} of=${known} lines=${2}>${(list) =>
      list.length
        ? html`<${Field} as="select" label=${t("Who?")} value=${chosen} onInput=${setChosen}>
            <option value="">${t("Choose somebody")}</option>${list.map(([id, name]) => html`<option key=${id} value=${id}>${name}</option>`)}<//>
          ${chosen && html`<${Sight} base=${base} user=${chosen} name=${list.find(([id]) => String(id) === chosen)[1]} />`}`
        : html`<p class="muted">${t("Nobody else is in your teams and organizations.")}</p>`
    }<//>
  <//>`;
}

function Sight({ base, user, name }) {
  const seen = useResource((signal) => api.lookAs({ kb_id: base.id, query: { user_id: user }, signal }), [base.id, user]);
  return html`<${Loaded} of=${seen} lines=${2}>${({ sees, changes, reason }) => html`
    <${Notice} tone=${sees ? "good" : "info"} title=${sees ? t("{name} sees it", { name }) : t("{name} doesn’t see it", { name })}>
      <p>${t(WHY[reason])}</p>
      <p>${sees ? (changes ? t("They find it, ask it, and can change and delete it.") : t("They find it and ask it, and can’t change it.")) : t("For them it doesn’t exist: no list, search, answer or count shows it.")}</p>
    <//>`}<//>`;
}
