/** Groups of an organization: rights under one name, for several roles to hold. */

import { html, useState } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { useAction, useResource } from "../../lib/resource.js";
import { t } from "../../lib/words.js";
import { Button, Empty, Loaded } from "../../parts/basics.js";
import { Field, Form } from "../../parts/forms.js";
import { Confirm, Dialog } from "../../parts/layers.js";
import { GroupChoice, KeyChoice } from "./key-choice.js";
import { RightsCard } from "./rights-card.js";

export function Groups({ id }) {
  const groups = useResource((signal) => everything(api.permissionGroups, { org_id: id, signal }), [id]);
  const [editing, setEditing] = useState(null);
  const [deleting, setDeleting] = useState(null);
  const create = html`<${Button} icon="plus" onClick=${() => setEditing({})}>${t("New group")}<//>`;
  return html`<${Loaded} of=${groups}>${(list) => html`
    ${list.length ? html`<div class="row"><span class="grow muted">${t("Roles that contain a group give all of its rights.")}</span>${create}</div>`
      : html`<${Empty} icon="people" title=${t("No groups yet")} action=${create}>${t("A group puts rights under one name, so that several roles can share them.")}<//>`}
    <div class="cards">${list.map(
      (group) => html`<${RightsCard} key=${group.id} of=${group} parts=${group.children} fixed=${group.inherited_from && t("Inherited")} onChange=${() => setEditing(group)} onDelete=${() => setDeleting(group)} />`,
    )}</div>
    ${editing && html`<${Edit} org=${id} group=${editing} others=${list.filter((other) => other.id !== editing.id)} onSaved=${groups.reload} onClose=${() => setEditing(null)} />`}
    ${deleting && html`<${Confirm} title=${t("Delete “{name}”?", { name: deleting.name })} confirm=${t("Delete")} onClose=${() => setDeleting(null)}
      onConfirm=${async () => { await api.deletePermissionGroup({ org_id: id, group_id: deleting.id }); groups.reload(); }}><p>${t("Remove the group from all roles first.")}</p><//>`}
  `}<//>`;
}

/** A new group, or the one with an id; it may contain others, whose rights it then includes. */
function Edit({ org, group, others, onSaved, onClose }) {
  const held = (group.children ?? []).map((child) => child.id);
  const [name, setName] = useState(group.name ?? "");
  const [description, setDescription] = useState(group.description ?? "");
  const [keys, setKeys] = useState(group.permissions ?? []);
  const [children, setChildren] = useState(held);
  const action = useAction(async () => {
    const body = { name, description, permissions: keys };
    const { id } = await (group.id ? api.changePermissionGroup({ org_id: org, group_id: group.id, body }) : api.createPermissionGroup({ org_id: org, body }));
    const place = { org_id: org, group_id: id };
    try {
      for (const child of held) if (!children.includes(child)) await api.removeChildGroup({ ...place, child_group_id: child });
      for (const child of children) if (!held.includes(child)) await api.addChildGroup({ ...place, body: { child_group_id: child } });
    } finally {
      onSaved();
    }
    onClose();
  });
  return html`<${Dialog} title=${group.name ?? t("New group")} onClose=${onClose}>
    <${Form} action=${action} submit=${group.id ? t("Save") : t("Create")} onCancel=${onClose} disabled=${!name.trim()}>
      <${Field} label=${t("Name")} value=${name} onInput=${setName} required autofocus />
      <${Field} label=${t("Description")} value=${description} onInput=${setDescription} optional />
      <${KeyChoice} value=${keys} onChange=${setKeys} />
      <${GroupChoice} legend=${t("Groups that it contains")} groups=${others} value=${children} onChange=${setChildren} />
    <//>
  <//>`;
}
