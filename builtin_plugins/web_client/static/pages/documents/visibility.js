/** Who sees something, in plain words. */

import { html } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { account, isOwn } from "../../lib/session.js";
import { plural, t } from "../../lib/words.js";
import { Badge, Failure, Notice } from "../../parts/basics.js";
import { Choice, Field } from "../../parts/forms.js";
import { Icon } from "../../parts/icons.js";
import { PeopleField } from "./people.js";

export const VISIBILITIES = {
  private: { icon: "lock", title: "Private" },
  team: { icon: "people", title: "Some people" },
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

/** What the API is sent of a choice of visibility: people are sent by name, those being typed included. */
export function sharingOf({ visibility, team_id, organization_id, people = [], typed = "" }) {
  if (visibility !== "people") return { visibility, team_id, organization_id };
  const names = [...people, typed.trim()].filter(Boolean);
  return names.length ? { visibility: "team", people: names } : { visibility: "private" };
}

/** The fields that a form changes, and the visibility if it changed: what was changed elsewhere in the meantime stays. */
export function changesOf(before, fields, seen) {
  const differs = (values) => Object.entries(values).filter(([key, value]) => JSON.stringify(value ?? null) !== JSON.stringify(before[key] ?? null));
  const sharing = sharingOf(seen);
  return { ...Object.fromEntries(differs(fields)), ...(differs(sharing).length > 0 ? sharing : {}) };
}

/** Teams and organizations that the caller can share with, and the team that something is shared with by now. */
function useGroups(current) {
  return useResource(async (signal) => {
    const [teams, organizations] = await Promise.all([everything(api.teams, { query: { mine: true }, signal }), api.myOrganizations({ signal })]);
    const isOther = current && !teams.some((team) => team.id === current);
    const other = isOther ? await api.team({ team_id: current, signal }).catch(() => null) : null;
    return { teams, organizations, other };
  });
}

/** The name of a person that a refused request had, but no account has. */
const unknownIn = (error) => (error?.detail?.[0]?.loc?.at(-2) === "people" ? error.detail[0].input : "");

/** A form's action without the error that `VisibilityChoice` shows at its field. */
export const besidesPeople = (action) => (unknownIn(action.error) ? { ...action, error: null } : action);

/** Who sees something. `value` has `visibility`, `team_id` and `organization_id`, or the `people` chosen; see `sharingOf`. */
export function VisibilityChoice({ value, owner, error, onChange }) {
  const groups = useGroups(value.team_id);
  const { teams = [], organizations = [], other = null } = groups.data ?? {};
  const set = (changes) => onChange({ ...value, ...changes });
  const listed = (other?.unlisted ? other.members : []).filter((member) => String(member.user_id) !== String(owner ?? account.value?.sub)).map((member) => member.username);
  const withPeople = value.visibility === "people" || (value.visibility === "team" && value.team_id === other?.id && other.unlisted);
  const people = value.people ?? listed;
  const options = [
    { value: "private", title: t("Private"), about: t("No other user finds it, counts it or gets answers from it.") },
    { value: "people", title: t("People I choose"), about: t("Only those you name. You can take anybody away again.") },
    teams.length && { value: "team", title: t("A team"), about: t("Everyone who is in the team, now or later.") },
    organizations.length && { value: "organization", title: t("An organization"), about: t("Every member of the organization.") },
    { value: "shared", title: t("Everyone here"), about: t("Every account on this server.") },
  ].filter(Boolean);
  const ownTeam = teams.some((team) => team.id === value.team_id) ? value.team_id : teams[0]?.id;
  const choose = (visibility) =>
    onChange({
      ...value,
      people,
      visibility,
      team_id: visibility === "team" ? ownTeam : null,
      organization_id: visibility === "organization" ? (value.organization_id ?? organizations[0].id) : null,
    });
  const setPeople = (changes) => set({ visibility: "people", people, ...changes });
  const unknown = unknownIn(error);
  return html`<div class="stack">
    <${Failure} error=${groups.error} onRetry=${groups.reload} />
    <${Choice} legend=${t("Who sees this?")} value=${withPeople ? "people" : value.visibility} onChange=${choose} options=${options} />
    <p class="hint">${t("Administrators of this server can see it in any case.")}</p>
    ${withPeople && html`<${PeopleField} value=${people} typed=${value.typed ?? ""} unknown=${unknown}
      onChange=${(names) => setPeople({ people: names, typed: names.length > people.length ? "" : value.typed })} onType=${(typed) => setPeople({ typed })} />`}
    ${value.visibility === "team" && !withPeople && html`<${Group} label=${t("Team")} items=${teams} value=${value.team_id} onChange=${(id) => set({ team_id: id })} />`}
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
