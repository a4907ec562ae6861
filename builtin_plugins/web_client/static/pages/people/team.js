/** A team: its members and invites. */

import { html, useState } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { go } from "../../lib/router.js";
import { account, isAdmin } from "../../lib/session.js";
import { day, t } from "../../lib/words.js";
import { Badge, Button, Failure, Head, Loaded } from "../../parts/basics.js";
import { Confirm, Menu, sayError } from "../../parts/layers.js";
import { saveJson } from "../../parts/save.js";
import { useFew } from "./few.js";
import { Import } from "./import.js";
import { InviteDialog, Invites } from "./invited.js";
import { useRights } from "./rights.js";

export const teamRoles = () => ({ member: t("Member"), team_admin: t("Team administrator") });

/** Only the team's managers may see whom it invites. */
function notTheirs(error) {
  if (error.status !== 403) throw error;
  return [];
}

export default function Team({ id }) {
  const team = useResource((signal) => api.team({ team_id: id, signal }), [id]);
  const invites = useResource((signal) => everything(api.teamInvites, { query: { team_id: id }, signal }).catch(notTheirs), [id]);
  const { shown, search, more } = useFew(team.data?.members ?? []);
  const [dialog, setDialog] = useState("");
  const me = Number(account.value?.sub);
  const rights = useRights(team.data?.organization_id);
  const leads = isAdmin.value || rights.members || team.data?.members.some((member) => member.user_id === me && member.team_role === "team_admin");
  const told = (work) => work.then(team.reload, sayError);
  const menuOf = (member) => [
    leads && {
      title: member.team_role === "team_admin" ? t("Make a member") : t("Make a team administrator"),
      icon: "people",
      onSelect: () => told(api.changeTeamMember({ team_id: id, user_id: member.user_id, body: { team_role: member.team_role === "team_admin" ? "member" : "team_admin" } })),
    },
    (leads || member.user_id === me) && {
      title: member.user_id === me ? t("Leave the team") : t("Remove from the team"),
      icon: "trash",
      danger: true,
      onSelect: () => told(api.removeTeamMember({ team_id: id, user_id: member.user_id })),
    },
  ];
  return html`<div class="page">
    <${Loaded} of=${team} back=${{ to: "/people", title: t("Teams") }}>${(data) => html`
      <${Head} title=${data.name} about=${data.description} back=${{ to: "/people", title: t("Teams") }}>
        ${leads && html`<${Button} kind="primary" icon="plus" onClick=${() => setDialog("invite")}>${t("Invite")}<//>`}
        ${leads && html`<${Import} send=${(parameters) => api.importTeam({ team_id: id, ...parameters })} onDone=${team.reload} />`}
        ${leads && html`<${Menu} label=${t("More")} kind="plain" small=${false} items=${[
          { title: t("Export"), icon: "download", onSelect: () => api.exportTeam({ team_id: id }).then((bundle) => saveJson(bundle, `team-${id}.json`), sayError) },
          { title: t("Delete"), icon: "trash", danger: true, onSelect: () => setDialog("delete") },
        ]} />`}
      <//>
      <${Failure} error=${rights.error} onRetry=${rights.reload} />
      ${search}
      <div class="table-box menus" tabindex="0" role="region" aria-label=${t("Members")}><table>
        <thead><tr><th>${t("Name")}</th><th>${t("E-mail")}</th><th>${t("Role")}</th><th class="wide-only">${t("Since")}</th><th><span class="hidden">${t("Actions")}</span></th></tr></thead>
        <tbody>${shown.map(
          (member) => html`<tr key=${member.user_id}><td><span class="name">${member.username}</span></td><td>${member.email ?? ""}</td>
            <td><${Badge} tone=${member.team_role === "team_admin" ? "accent" : "neutral"}>${teamRoles()[member.team_role]}<//></td><td class="wide-only">${day(member.joined_at)}</td>
            <td class="right"><${Menu} label=${t("More on {name}", { name: member.username })} items=${menuOf(member)} /></td></tr>`,
        )}</tbody></table></div>
      ${more}
      ${leads && html`<section class="stack"><h2>${t("Invites")}</h2><${Loaded} of=${invites}>${(items) => html`<${Invites} items=${items} onRevoke=${(invite) => api.revokeTeamInvite({ invite_id: invite.id }).then(invites.reload, sayError)} />`}<//></section>`}
      ${dialog === "invite" && html`<${InviteDialog} title=${t("Invite to {name}", { name: data.name })} roles=${teamRoles()} send=${({ email, role }) => api.inviteToTeam({ body: { email, team_id: Number(id), team_role: role } })} onSent=${invites.reload} onClose=${() => setDialog("")} />`}
      ${dialog === "delete" && html`<${Confirm} title=${t("Delete “{name}”?", { name: data.name })} confirm=${t("Delete")} onClose=${() => setDialog("")}
        onConfirm=${async () => { await api.deleteTeam({ team_id: id }); go("/people"); }}><p>${t("What was shared with the team is no longer seen by its members.")}</p><//>`}
    `}<//>
  </div>`;
}
