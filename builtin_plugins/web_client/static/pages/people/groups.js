/** Groups of an organization: rights under one name, for several roles to hold. */

import { html, useState } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { useAction, useResource } from "../../lib/resource.js";
import { t } from "../../lib/words.js";
import { Button, Empty, Loaded } from "../../parts/basics.js";
import { Field, Form } from "../../parts/forms.js";
import { Confirm, Dialog } from "../../parts/layers.js";
import { KeyChoice } from "./key-choice.js";
import { RightsCard } from "./rights-card.js";

export function Groups({ id }) {
  const groups = useResource((signal) => everything(api.permissionGroups, { org_id: id, signal }), [id]);
  const [creating, setCreating] = useState(false);
  const [deleting, setDeleting] = useState(null);
  const create = html`<${Button} icon="plus" onClick=${() => setCreating(true)}>${t("New group")}<//>`;
  return html`<${Loaded} of=${groups}>${(list) => html`
    ${list.length ? html`<div class="row"><span class="grow muted">${t("Roles that hold a group give all of its rights.")}</span>${create}</div>`
      : html`<${Empty} icon="people" title=${t("No groups yet")} action=${create}>${t("A group puts rights under one name, so that several roles can hold them.")}<//>`}
    <div class="cards">${list.map(
      (group) => html`<${RightsCard} key=${group.id} of=${group} parts=${group.children} fixed=${group.inherited_from && t("From above")} onDelete=${() => setDeleting(group)} />`,
    )}</div>
    ${creating && html`<${Create} id=${id} onMade=${groups.reload} onClose=${() => setCreating(false)} />`}
    ${deleting && html`<${Confirm} title=${t("Delete “{name}”?", { name: deleting.name })} confirm=${t("Delete")} onClose=${() => setDeleting(null)}
      onConfirm=${async () => { await api.deletePermissionGroup({ org_id: id, group_id: deleting.id }); groups.reload(); }}><p>${t("A group that roles hold must be taken out of them first.")}</p><//>`}
  `}<//>`;
}

function Create({ id, onMade, onClose }) {
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const [keys, setKeys] = useState([]);
  const action = useAction(async () => {
    await api.createPermissionGroup({ org_id: id, body: { name, description, permissions: keys } });
    onMade();
    onClose();
  });
  return html`<${Dialog} title=${t("New group")} onClose=${onClose}>
    <${Form} action=${action} submit=${t("Create")} onCancel=${onClose} disabled=${!name.trim()}>
      <${Field} label=${t("Name")} value=${name} onInput=${setName} required autofocus />
      <${Field} label=${t("Description")} value=${description} onInput=${setDescription} optional />
      <${KeyChoice} value=${keys} onChange=${setKeys} />
    <//>
  <//>`;
}
