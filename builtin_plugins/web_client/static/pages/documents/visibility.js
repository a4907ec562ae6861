/** Who sees something, in plain words. */

import { html } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { isOwn } from "../../lib/session.js";
import { plural, t } from "../../lib/words.js";
import { Badge, Failure, Notice } from "../../parts/basics.js";
import { Choice, Field } from "../../parts/forms.js";
import { Icon } from "../../parts/icons.js";

export const VISIBILITIES = {
  private: { icon: "lock", title: "Private" },
  team: { icon: "people", title: "A team" },
  organization: { icon: "organization", title: "An organization" },
  shared: { icon: "globe", title: "Everyone here" },
};

/** What only administrators see. */
const OTHERS = { icon: "lock", title: "Private to another user" };

function shownAs(of) {
  return of.visibility === "private" && !isOwn(of) ? OTHERS : (VISIBILITIES[of.visibility] ?? VISIBILITIES.private);
}

export function VisibilityBadge({ of }) {
  const { icon, title } = shownAs(of);
  return html`<${Badge}><${Icon} name=${icon} size=${13} />${t(title)}<//>`;
}

/** The fields that a form changes, and the visibility if it changed: what was changed elsewhere in the meantime stays. */
export function changesOf(before, fields, seen) {
  const differs = (values) => Object.entries(values).filter(([key, value]) => JSON.stringify(value ?? null) !== JSON.stringify(before[key] ?? null));
  return { ...Object.fromEntries(differs(fields)), ...(differs(seen).length > 0 ? seen : {}) };
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
    { value: "private", title: t("Private"), about: t("No other user finds it, counts it or gets answers from it.") },
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
    <p class="hint">${t("Administrators of this server can see it in any case.")}</p>
    ${value.visibility === "team" && html`<${Group} label=${t("Team")} items=${teams} value=${value.team_id} onChange=${(id) => set({ team_id: id })} />`}
    ${value.visibility === "organization" && html`<${Group} label=${t("Organization")} items=${organizations} value=${value.organization_id} onChange=${(id) => set({ organization_id: id })} />`}
  </div>`;
}

/** A warning for a pipeline that others may use, over knowledge bases that they can't see: they would get nothing. */
export function StillPrivate({ visibility, bases }) {
  const names = bases.filter((base) => base.visibility === "private").map((base) => base.name);
  if (visibility === "private" || !names.length) return null;
  return html`<${Notice} tone="warn" title=${plural(names.length, "One of its knowledge bases is private", "{n} of its knowledge bases are private")}>
    ${t("Others get no answers from what is private. Also share, under Documents: {names}", { names: names.join(", ") })}<//>`;
}

const Group = ({ label, items, value, onChange }) => html`<${Field} as="select" label=${label} value=${value} onInput=${(id) => onChange(Number(id))}>
  ${items.map((item) => html`<option key=${item.id} value=${item.id}>${item.name}</option>`)}
<//>`;
