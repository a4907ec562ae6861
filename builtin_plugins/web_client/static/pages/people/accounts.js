/** All accounts of the server, for Platform Admins. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { query, setQuery } from "../../lib/router.js";
import { account } from "../../lib/session.js";
import { day, number, t } from "../../lib/words.js";
import { Badge, Button, Copyable, Head, Loaded, Notice } from "../../parts/basics.js";
import { Confirm, Dialog, Menu, sayError } from "../../parts/layers.js";
import { DeleteUser } from "./deletion.js";
import { PeopleTabs } from "./tabs.js";

const AT_ONCE = 50;

export default function Accounts() {
  const text = query.value.get("q") ?? "";
  const offset = Number(query.value.get("offset")) || 0;
  const users = useResource((signal) => api.users({ query: { q: text, limit: AT_ONCE, offset }, signal }), [text, offset]);
  const [dialog, setDialog] = useState(null);
  const told = (work) => work.then(users.reload, sayError);
  const menuOf = (user) =>
    user.id !== Number(account.value?.sub) && [
      !user.sso && { title: user.role === "admin" ? t("Make a user") : t("Make an administrator"), icon: "people", onSelect: () => told(api.setUserRole({ user_id: user.id, body: { role: user.role === "admin" ? "user" : "admin" } })) },
      !user.sso && { title: t("Reset the password"), icon: "keys", onSelect: () => setDialog({ kind: "reset", user }) },
      { title: user.is_active ? t("Deactivate") : t("Activate"), icon: "lock", danger: user.is_active, onSelect: () => told(api.setUserStatus({ user_id: user.id, body: { is_active: !user.is_active } })) },
      { title: t("Delete"), icon: "trash", danger: true, onSelect: () => setDialog({ kind: "delete", user }) },
    ];
  return html`<div class="page">
    <${Head} title=${t("People")} about=${t("All accounts on this server.")} />
    <${PeopleTabs} current="/people/accounts" />
    <div class="filters"><input class="input search" type="search" placeholder=${t("Find by name or e-mail")} aria-label=${t("Find by name or e-mail")} value=${text} onChange=${(event) => setQuery({ q: event.target.value, offset: null })} /></div>
    <${Loaded} of=${users}>${({ items, total }) => html`
      <div class="table-box menus" tabindex="0" role="region" aria-label=${t("Accounts")}><table>
        <thead><tr><th>${t("Name")}</th><th>${t("E-mail")}</th><th>${t("Role")}</th><th class="wide-only">${t("Since")}</th><th><span class="hidden">${t("Actions")}</span></th></tr></thead>
        <tbody>${items.map(
          (user) => html`<tr key=${user.id}><td><span class="name">${user.username}</span></td><td>${user.email}</td>
            <td><div class="row start"><${Badge}>${user.role === "admin" ? t("Administrator") : t("User")}<//>${user.platform_admin && html`<${Badge} tone="accent">Platform Admin<//>`}${user.sso && html`<${Badge}>SSO<//>`}${!user.is_active && html`<${Badge} tone="bad">${t("Deactivated")}<//>`}</div></td>
            <td class="wide-only">${day(user.created_at)}</td><td class="right"><${Menu} label=${t("More on {name}", { name: user.username })} items=${menuOf(user) || []} /></td></tr>`,
        )}</tbody></table></div>
      ${total > AT_ONCE && html`<div class="row center">
        <${Button} icon="back" aria-label=${t("Previous")} disabled=${offset === 0} onClick=${() => setQuery({ offset: Math.max(0, offset - AT_ONCE) || null })} />
        <span class="muted">${t("{from} to {to} of {total}", { from: number(offset + 1), to: number(offset + items.length), total: number(total) })}</span>
        <${Button} icon="next" aria-label=${t("Next")} disabled=${offset + AT_ONCE >= total} onClick=${() => setQuery({ offset: offset + AT_ONCE })} /></div>`}`}<//>
    ${dialog?.kind === "delete" && html`<${DeleteUser} user=${dialog.user} onDone=${users.reload} onClose=${() => setDialog(null)} />`}
    ${dialog?.kind === "reset" && html`<${Confirm} title=${t("Reset the password of {name}?", { name: dialog.user.username })} confirm=${t("Reset the password")} onClose=${() => setDialog((was) => (was.kind === "reset" ? null : was))}
      onConfirm=${async () => {
        const { temporary_password: password } = await api.resetUserPassword({ user_id: dialog.user.id, body: { mode: "generate" } });
        setDialog({ kind: "password", user: dialog.user, password });
      }}><p>${t("You get a temporary one to pass on. All their sessions end.")}</p><//>`}
    ${dialog?.kind === "password" && html`<${Dialog} title=${t("The temporary password")} onClose=${() => setDialog(null)}>
      <${Notice} tone="warn">${t("It is shown only this once. They choose their own at the next sign-in.")}<//><${Copyable} text=${dialog.password} label=${t("The temporary password")} /><//>`}
  </div>`;
}
