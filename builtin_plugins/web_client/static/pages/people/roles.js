/** Roles of an organization: named sets of rights. */

import { html, useState } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { useAction, useResource } from "../../lib/resource.js";
import { t } from "../../lib/words.js";
import { Button, Loaded } from "../../parts/basics.js";
import { Check, Field, Form } from "../../parts/forms.js";
import { Confirm, Dialog, sayError } from "../../parts/layers.js";
import { GroupChoice, KeyChoice } from "./key-choice.js";
import { RightsCard } from "./rights-card.js";

export function Roles({ id, rights }) {
  const roles = useResource((signal) => everything(api.roles, { org_id: id, signal }), [id]);
  const [editing, setEditing] = useState(null);
  const [deleting, setDeleting] = useState(null);
  return html`<${Loaded} of=${roles}>${(list) => html`
    <div class="row"><span class="grow muted">${t("A role gives rights once it is given to a member.")}</span>${rights.roles && html`<${Button} icon="plus" onClick=${() => setEditing({})}>${t("New role")}<//>`}</div>
    <div class="cards">${list.map(
      (role) => html`<${RightsCard} key=${role.id} of=${inWords(role)} parts=${role.permission_groups} fixed=${role.is_builtin ? t("Built in") : role.inherited_from && t("Inherited")} onChange=${() => setEditing(role)} onDelete=${rights.roles && (() => setDeleting(role))} />`,
    )}</div>
    ${editing && html`<${Edit} org=${id} role=${editing} onSaved=${roles.reload} onClose=${() => setEditing(null)} />`}
    ${deleting && html`<${Confirm} title=${t("Delete “{name}”?", { name: deleting.name })} confirm=${t("Delete")} onClose=${() => setDeleting(null)}
      onConfirm=${async () => { await api.deleteRole({ org_id: id, role_id: deleting.id }); roles.reload(); }}><p>${t("Members who have it lose its rights.")}</p><//>`}
  `}<//>`;
}

const BUILT_IN = {
  owner: "Everything in the organization and in those below it.",
  admin: "Members, settings and the audit log of the organization and of those below it.",
  member: "Sees the organization and what its members share.",
};

/** The built-in roles are described in the reader's language. */
const inWords = (role) => (role.is_builtin ? { ...role, description: t(BUILT_IN[role.name] ?? role.description) } : role);

/** A new role, or the one with an id. */
function Edit({ org, role, onSaved, onClose }) {
  const known = useResource((signal) => everything(api.permissionGroups, { org_id: org, signal }), [org]);
  const [name, setName] = useState(role.name ?? "");
  const [description, setDescription] = useState(role.description ?? "");
  const [keys, setKeys] = useState(role.permissions ?? []);
  const [groups, setGroups] = useState((role.permission_groups ?? []).map((group) => group.id));
  const action = useAction(async () => {
    const body = { name, description, permissions: keys, permission_group_ids: groups };
    await (role.id ? api.changeRole({ org_id: org, role_id: role.id, body }) : api.createRole({ org_id: org, body }));
    onSaved();
    onClose();
  });
  return html`<${Dialog} title=${role.name ?? t("New role")} onClose=${onClose}>
    <${Form} action=${action} submit=${role.id ? t("Save") : t("Create")} onCancel=${onClose} disabled=${!name.trim()}>
      <${Field} label=${t("Name")} value=${name} onInput=${setName} required autofocus />
      <${Field} label=${t("Description")} value=${description} onInput=${setDescription} optional />
      <${KeyChoice} value=${keys} onChange=${setKeys} />
      <${Loaded} of=${known} lines=${2}>${(list) => html`<${GroupChoice} legend=${t("Groups of rights")} groups=${list} value=${groups} onChange=${setGroups} />`}<//>
    <//>
  <//>`;
}

/** Give a member a role, or take one back. */
export function AssignRole({ org, member, onClose }) {
  const found = useResource(async (signal) => {
    const [roles, held] = await Promise.all([everything(api.roles, { org_id: org, signal }), everything(api.memberRoles, { org_id: org, user_id: member.user_id, signal })]);
    return { roles, held: new Set(held.map((item) => item.role_id)) };
  }, [org, member.user_id]);
  const toggle = async (role, on) => {
    const place = { org_id: org, user_id: member.user_id };
    try {
      if (on) await api.assignRole({ ...place, body: { role_id: role.id } });
      else await api.unassignRole({ ...place, role_id: role.id });
    } catch (error) {
      sayError(error);
    }
    found.reload();
  };
  return html`<${Dialog} title=${t("Roles of {name}", { name: member.username })} onClose=${onClose}>
    <${Loaded} of=${found}>${({ roles, held }) => html`<div class="stack close">${roles.filter((role) => !role.is_builtin).map((role) => html`<${Check} key=${role.id} label=${role.name} hint=${role.description} checked=${held.has(role.id)} onChange=${(on) => toggle(role, on)} />`)}
      ${!roles.some((role) => !role.is_builtin) && html`<p class="muted">${t("There are no roles yet. Make one under “Roles”.")}</p>`}</div>`}<//>
  <//>`;
}
