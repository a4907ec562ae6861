/** Roles of an organization: named sets of rights. */

import { html, useState } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { useAction, useResource } from "../../lib/resource.js";
import { t } from "../../lib/words.js";
import { Badge, Button, Loaded } from "../../parts/basics.js";
import { Check, Field, Form } from "../../parts/forms.js";
import { Confirm, Dialog, say } from "../../parts/layers.js";

export function Roles({ id, rights }) {
  const roles = useResource((signal) => everything(api.roles, { org_id: id, signal }), [id]);
  const [creating, setCreating] = useState(false);
  const [deleting, setDeleting] = useState(null);
  return html`<${Loaded} of=${roles}>${(list) => html`
    <div class="row"><span class="grow muted">${t("A role gives rights once it is given to a member.")}</span>${rights.roles && html`<${Button} icon="plus" onClick=${() => setCreating(true)}>${t("New role")}<//>`}</div>
    <div class="cards">${list.map(
      (role) => html`<article class="tile" key=${role.id}>
        <div class="row tight"><h2 class="grow">${role.name}</h2>${role.is_builtin ? html`<${Badge}>${t("Built in")}<//>` : rights.roles && html`<${Button} small kind="quiet" icon="trash" aria-label=${t("Delete {name}", { name: role.name })} onClick=${() => setDeleting(role)} />`}</div>
        ${role.description && html`<p>${role.description}</p>`}
        <div class="tile-foot">${role.permissions.map((key) => html`<code key=${key}>${key}</code>`)}${role.permission_groups.map((group) => html`<${Badge} key=${group.id}>${group.name}<//>`)}</div>
      </article>`,
    )}</div>
    ${creating && html`<${Create} id=${id} onMade=${roles.reload} onClose=${() => setCreating(false)} />`}
    ${deleting && html`<${Confirm} title=${t("Delete “{name}”?", { name: deleting.name })} confirm=${t("Delete")} onClose=${() => setDeleting(null)}
      onConfirm=${async () => { await api.deleteRole({ org_id: id, role_id: deleting.id }); roles.reload(); }}><p>${t("Members who have it lose its rights.")}</p><//>`}
  `}<//>`;
}

function Create({ id, onMade, onClose }) {
  const known = useResource((signal) => api.permissions({ signal }));
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const [keys, setKeys] = useState([]);
  const action = useAction(async () => {
    await api.createRole({ org_id: id, body: { name, description, permissions: keys } });
    onMade();
    onClose();
  });
  const toggle = (key, on) => setKeys(on ? [...keys, key] : keys.filter((other) => other !== key));
  return html`<${Dialog} title=${t("New role")} onClose=${onClose}>
    <${Form} action=${action} submit=${t("Create")} onCancel=${onClose} disabled=${!name.trim()}>
      <${Field} label=${t("Name")} value=${name} onInput=${setName} required autofocus />
      <${Field} label=${t("Description")} value=${description} onInput=${setDescription} optional />
      <${Loaded} of=${known}>${({ permissions }) => html`<fieldset class="choice scroll"><legend>${t("Rights")}</legend>
        ${permissions.filter((item) => item.scope === "organization").map((item) => html`<${Check} key=${item.key} label=${item.description} hint=${item.key} checked=${keys.includes(item.key)} onChange=${(on) => toggle(item.key, on)} />`)}
      </fieldset>`}<//>
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
      say(error.message, "bad");
    }
    found.reload();
  };
  return html`<${Dialog} title=${t("Roles of {name}", { name: member.username })} onClose=${onClose}>
    <${Loaded} of=${found}>${({ roles, held }) => html`<div class="stack close">${roles.filter((role) => !role.is_builtin).map((role) => html`<${Check} key=${role.id} label=${role.name} hint=${role.description} checked=${held.has(role.id)} onChange=${(on) => toggle(role, on)} />`)}
      ${!roles.some((role) => !role.is_builtin) && html`<p class="muted">${t("There are no roles yet. Make one under “Roles”.")}</p>`}</div>`}<//>
  <//>`;
}
