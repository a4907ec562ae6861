/** Who sees something, in plain words. */

import { html } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { t } from "../../lib/words.js";
import { Badge, Failure } from "../../parts/basics.js";
import { Choice, Field } from "../../parts/forms.js";
import { Icon } from "../../parts/icons.js";

export const VISIBILITIES = {
  private: { icon: "lock", title: "Only you" },
  team: { icon: "people", title: "A team" },
  organization: { icon: "organization", title: "An organization" },
  shared: { icon: "globe", title: "Everyone here" },
};

export function VisibilityBadge({ of }) {
  const { icon, title } = VISIBILITIES[of.visibility] ?? VISIBILITIES.private;
  return html`<${Badge}><${Icon} name=${icon} size=${13} />${t(title)}<//>`;
}

/** Teams and organizations that the caller can share with. */
export function useGroups() {
  return useResource(async (signal) => {
    const [teams, organizations] = await Promise.all([everything(api.teams, { query: { mine: true }, signal }), api.myOrganizations({ signal })]);
    return { teams, organizations };
  });
}

export function VisibilityChoice({ value, onChange }) {
  const groups = useGroups();
  const { teams = [], organizations = [] } = groups.data ?? {};
  const set = (changes) => onChange({ ...value, ...changes });
  const options = [
    { value: "private", title: t("Only you"), about: t("Nobody else finds it, counts it or gets answers from it.") },
    teams.length && { value: "team", title: t("A team"), about: t("Everyone who is in the team, now or later.") },
    organizations.length && { value: "organization", title: t("An organization"), about: t("Every member of the organization.") },
    { value: "shared", title: t("Everyone here"), about: t("Every account on this server.") },
  ].filter(Boolean);
  const choose = (visibility) =>
    onChange({
      visibility,
      team_id: visibility === "team" ? (value.team_id ?? teams[0].id) : null,
      organization_id: visibility === "organization" ? (value.organization_id ?? organizations[0].id) : null,
    });
  return html`<div class="stack">
    <${Failure} error=${groups.error} onRetry=${groups.reload} />
    <${Choice} legend=${t("Who sees this?")} value=${value.visibility} onChange=${choose} options=${options} />
    ${value.visibility === "team" && html`<${Group} label=${t("Team")} items=${teams} value=${value.team_id} onChange=${(id) => set({ team_id: id })} />`}
    ${value.visibility === "organization" && html`<${Group} label=${t("Organization")} items=${organizations} value=${value.organization_id} onChange=${(id) => set({ organization_id: id })} />`}
  </div>`;
}

const Group = ({ label, items, value, onChange }) => html`<${Field} as="select" label=${label} value=${value} onInput=${(id) => onChange(Number(id))}>
  ${items.map((item) => html`<option key=${item.id} value=${item.id}>${item.name}</option>`)}
<//>`;
