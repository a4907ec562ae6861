/** Organizations as a tree. */

import { html, useState } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { useAction, useResource } from "../../lib/resource.js";
import { Link, go } from "../../lib/router.js";
import { isAdmin, isPlatformAdmin, refresh } from "../../lib/session.js";
import { t } from "../../lib/words.js";
import { Button, Empty, Head, Loaded } from "../../parts/basics.js";
import { Field, Form } from "../../parts/forms.js";
import { Dialog } from "../../parts/layers.js";
import { PeopleTabs } from "./tabs.js";

/** A Platform Admin sees all, everybody else those that they are in. */
const load = (signal) => (isPlatformAdmin.value ? everything(api.organizations, { signal }) : api.myOrganizations({ signal }));

/** Each below its parent, if that is visible: {organization, depth}. */
export function treeOf(organizations) {
  const known = new Set(organizations.map((item) => item.id));
  const under = (parent, depth) =>
    organizations
      .filter((item) => (parent === null ? !known.has(item.parent_id) : item.parent_id === parent))
      .sort((one, other) => one.name.localeCompare(other.name))
      .flatMap((organization) => [{ organization, depth }, ...under(organization.id, depth + 1)]);
  return under(null, 0);
}

export default function Organizations() {
  const found = useResource(load);
  const [creating, setCreating] = useState(false);
  const add = isAdmin.value && html`<${Button} kind="primary" icon="plus" onClick=${() => setCreating(true)}>${t("New organization")}<//>`;
  return html`<div class="page">
    <${Head} title=${t("People")} about=${t("An organization manages its members, their roles, and the organizations below it.")}>${add}<//>
    <${PeopleTabs} current="/people/organizations" />
    <${Loaded} of=${found}>${(list) =>
      list.length === 0
        ? html`<${Empty} icon="organization" title=${t("No organizations")} action=${add}>${t("You don’t belong to any. Whoever manages one can invite you.")}<//>`
        : html`<div class="table-box" tabindex="0" role="region" aria-label=${t("Organizations")}><table>
            <thead><tr><th>${t("Name")}</th><th>${t("Short name")}</th><th class="number">${t("Members")}</th></tr></thead>
            <tbody>${treeOf(list).map(
              ({ organization, depth }) => html`<tr key=${organization.id}>
                <td style=${{ paddingLeft: `${14 + depth * 24}px` }}><${Link} class="name" to=${`/people/organizations/${organization.id}`}>${organization.name}<//></td>
                <td><code>${organization.slug}</code></td><td class="number">${organization.member_count ?? ""}</td></tr>`,
            )}</tbody></table></div>`
    }<//>
    ${creating && html`<${CreateOrganization} onClose=${() => setCreating(false)} />`}
  </div>`;
}

const slugOf = (name) => name.toLowerCase().normalize("NFKD").replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60);

export function CreateOrganization({ parent, onClose }) {
  const [name, setName] = useState("");
  const [slug, setSlug] = useState("");
  const action = useAction(async () => {
    const made = await api.createOrganization({ body: { name, slug: slug || slugOf(name), parent_id: parent ?? null } });
    await refresh();
    go(`/people/organizations/${made.id}`);
    onClose();
  });
  return html`<${Dialog} title=${t("New organization")} onClose=${onClose}>
    <${Form} action=${action} submit=${t("Create")} onCancel=${onClose} disabled=${!name.trim()}>
      <${Field} label=${t("Name")} value=${name} onInput=${setName} required autofocus error=${action.error?.fields?.name} />
      <${Field} label=${t("Short name")} value=${slug} onInput=${setSlug} placeholder=${slugOf(name)} error=${action.error?.fields?.slug} optional />
    <//>
  <//>`;
}
