/** Members of an organization: their role, what they may do and why, suspending and removing them. */

import { html, useState } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { account } from "../../lib/session.js";
import { t } from "../../lib/words.js";
import { Badge, Loaded } from "../../parts/basics.js";
import { Confirm, Dialog, Menu, sayError } from "../../parts/layers.js";
import { useFew } from "./few.js";
import { organizationRoles } from "./organization.js";
import { AssignRole } from "./roles.js";

export function Members({ id, rights }) {
  const members = useResource((signal) => everything(api.members, { org_id: id, signal }), [id]);
  const { shown, search, more } = useFew(members.data ?? []);
  const [dialog, setDialog] = useState(null);
  const told = (work) => work.then(members.reload, sayError);
  const me = Number(account.value?.sub);
  const owners = (members.data ?? []).filter((member) => member.org_role === "owner" && !member.suspended);
  // An organization keeps an owner: the last one can't be changed, suspended or removed.
  const isLast = (member) => owners.length === 1 && owners[0].user_id === member.user_id;
  const acts = (member) => rights.members && member.managed_by_caller && !isLast(member);
  const menuOf = (member) => [
    ...Object.entries(organizationRoles())
      .filter(([role]) => acts(member) && role !== member.org_role)
      .map(([role, title]) => ({ title: t("Set role: {role}", { role: title }), icon: "people", onSelect: () => told(api.setMember({ org_id: id, body: { user_id: member.user_id, org_role: role } })) })),
    (member.user_id === me || rights.members || rights.roles) && { title: member.user_id === me ? t("What may I do here?") : t("What may they do?"), icon: "info", onSelect: () => setDialog({ kind: "rights", member }) },
    rights.roles && { title: t("Assign a role"), icon: "plus", onSelect: () => setDialog({ kind: "assign", member }) },
    acts(member) && (member.suspended
      ? { title: t("Lift the suspension"), icon: "check", onSelect: () => told(api.restoreMember({ org_id: id, user_id: member.user_id })) }
      : { title: t("Suspend"), icon: "lock", onSelect: () => told(api.suspendMember({ org_id: id, user_id: member.user_id })) }),
    (acts(member) || (member.user_id === me && !isLast(member))) && { title: member.user_id === me ? t("Leave the organization") : t("Remove"), icon: "trash", danger: true, onSelect: () => setDialog({ kind: "remove", member }) },
  ];
  return html`<${Loaded} of=${members}>${() => html`
    ${search}
    <div class="table-box menus" tabindex="0" role="region" aria-label=${t("Members")}><table>
      <thead><tr><th>${t("Name")}</th><th>${t("E-mail")}</th><th>${t("Role")}</th><th><span class="hidden">${t("Actions")}</span></th></tr></thead>
      <tbody>${shown.map(
        (member) => html`<tr key=${member.user_id}><td><span class="name">${member.username}</span></td><td>${member.email}</td>
          <td><div class="row start"><${Badge} tone=${member.org_role === "owner" ? "accent" : "neutral"}>${organizationRoles()[member.org_role]}<//>
            ${member.suspended && html`<${Badge} tone="warn">${t("Suspended")}<//>`}${!member.is_active && html`<${Badge} tone="bad">${t("Deactivated")}<//>`}</div></td>
          <td class="right"><${Menu} label=${t("More on {name}", { name: member.username })} items=${menuOf(member)} /></td></tr>`,
      )}</tbody></table></div>
    ${more}
    ${dialog?.kind === "rights" && html`<${Rights} org=${id} member=${dialog.member} onClose=${() => setDialog(null)} />`}
    ${dialog?.kind === "assign" && html`<${AssignRole} org=${id} member=${dialog.member} onClose=${() => setDialog(null)} />`}
    ${dialog?.kind === "remove" && html`<${Confirm} title=${t("Remove {name}?", { name: dialog.member.username })} confirm=${t("Remove")} onClose=${() => setDialog(null)}
      onConfirm=${async () => { await api.removeMember({ org_id: id, user_id: dialog.member.user_id }); members.reload(); }}><p>${t("They lose what the organization shares with them.")}</p><//>`}
  `}<//>`;
}

/** Each right, and the role that grants it. */
function Rights({ org, member, onClose }) {
  const found = useResource(
    async (signal) => {
      const [held, known] = await Promise.all([api.effectivePermissions({ org_id: org, user_id: member.user_id, signal }), api.permissions({ signal })]);
      return { held: held.permissions, about: new Map(known.permissions.map((item) => [item.key, item.description])) };
    },
    [org, member.user_id],
  );
  return html`<${Dialog} title=${t("What {name} may do here", { name: member.username })} onClose=${onClose} wide>
    <${Loaded} of=${found}>${({ held, about }) =>
      held.length
        ? html`<ul class="list">${held.map(
            (item) => html`<li class="stack close" key=${`${item.permission_key}-${item.role_id}`}><strong>${about.get(item.permission_key) ?? item.permission_key}</strong>
              <span class="faint"><code>${item.permission_key}</code> · ${t("through the role “{name}”", { name: item.role_name ?? item.role_id })}${item.permission_group_name ? ` · ${item.permission_group_name}` : ""}${item.via_ancestor_organization_id ? ` · ${t("from an organization above")}` : ""}</span></li>`,
          )}</ul>`
        : html`<p class="muted">${t("Nothing beyond what every member may: read and ask what is shared with the organization.")}</p>`
    }<//>
  <//>`;
}
