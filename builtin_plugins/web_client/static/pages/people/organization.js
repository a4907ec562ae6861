/** One organization: members, invites, roles, what is below it. */

import { html, useState } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { Link } from "../../lib/router.js";
import { plural, t } from "../../lib/words.js";
import { Button, Empty, Failure, Head, Loaded, Tabs } from "../../parts/basics.js";
import { Menu, sayError } from "../../parts/layers.js";
import { saveJson } from "../../parts/save.js";
import { Groups } from "./groups.js";
import { Import } from "./import.js";
import { InviteDialog, Invites } from "./invited.js";
import { Members } from "./members.js";
import { CreateOrganization } from "./organizations.js";
import { useRights } from "./rights.js";
import { Roles } from "./roles.js";

export const organizationRoles = () => ({ member: t("Member"), admin: t("Administrator"), owner: t("Owner") });

export default function Organization({ id, tab = "members" }) {
  const found = useResource((signal) => api.organization({ org_id: id, signal }), [id]);
  const rights = useRights(id);
  const [dialog, setDialog] = useState("");
  const [sent, setSent] = useState(0);
  const here = `/people/organizations/${id}`;
  const exported = () => api.exportOrganization({ org_id: id }).then((bundle) => saveJson(bundle, `organization-${id}.json`), sayError);
  return html`<div class="page">
    <${Loaded} of=${found} back=${{ to: "/people/organizations", title: t("Organizations") }}>${(organization) => html`
      <${Head} title=${organization.name} back=${{ to: "/people/organizations", title: t("Organizations") }} about=${plural(organization.member_count, "One member", "{n} members")}>
        ${rights.members && html`<${Button} kind="primary" icon="plus" onClick=${() => setDialog("invite")}>${t("Invite")}<//>`}
        ${rights.settings && html`<${Import} send=${(parameters) => api.importOrganization({ org_id: id, ...parameters })} onDone=${found.reload} />`}
        <${Menu} label=${t("More")} kind="plain" small=${false} items=${rights.settings && [
          { title: t("New organization below"), icon: "organization", onSelect: () => setDialog("below") },
          { title: t("Export"), icon: "download", onSelect: exported },
        ]} />
      <//>
      <${Failure} error=${rights.error} onRetry=${rights.reload} />
      <${Tabs} label=${organization.name} current=${tab === "members" ? here : `${here}/${tab}`} tabs=${[
        { title: t("Members"), to: here },
        rights.members && { title: t("Invites"), to: `${here}/invites` },
        { title: t("Roles"), to: `${here}/roles` },
        rights.roles && { title: t("Groups of rights"), to: `${here}/groups` },
        { title: t("Below"), to: `${here}/below` },
      ].filter(Boolean)} />
      ${tab === "members" && html`<${Members} id=${id} rights=${rights} />`}
      ${tab === "invites" && html`<${InviteList} id=${id} key=${sent} />`}
      ${tab === "roles" && html`<${Roles} id=${id} rights=${rights} />`}
      ${tab === "groups" && rights.roles && html`<${Groups} id=${id} />`}
      ${tab === "below" && html`<${Below} id=${id} />`}
      ${dialog === "below" && html`<${CreateOrganization} parent=${Number(id)} onClose=${() => setDialog("")} />`}
      ${dialog === "invite" && html`<${InviteDialog} title=${t("Invite to {name}", { name: organization.name })} roles=${organizationRoles()} onSent=${() => setSent(sent + 1)} onClose=${() => setDialog("")}
        send=${({ email, role }) => api.inviteToOrganization({ org_id: id, body: { email, org_role: role } })} />`}
    `}<//>
  </div>`;
}

function InviteList({ id }) {
  const invites = useResource((signal) => everything(api.organizationInvites, { org_id: id, signal }), [id]);
  const revoke = (invite) => api.revokeOrganizationInvite({ org_id: id, invite_id: invite.id }).then(invites.reload, sayError);
  return html`<${Loaded} of=${invites}>${(items) => html`<${Invites} items=${items} onRevoke=${revoke} />`}<//>`;
}

function Below({ id }) {
  const found = useResource((signal) => everything(api.subOrganizations, { org_id: id, signal }), [id]);
  return html`<${Loaded} of=${found}>${(items) =>
    items.length
      ? html`<div class="cards">${items.map((item) => html`<${Link} class="tile" key=${item.id} to=${`/people/organizations/${item.id}`}><h2>${item.name}</h2><div class="tile-foot">${plural(item.member_count, "One member", "{n} members")}</div><//>`)}</div>`
      : html`<${Empty} icon="organization" title=${t("Nothing below")}>${t("Departments or customers can be organizations of their own, with their own members.")}<//>`
  }<//>`;
}
