/** An invitation, from the link in its e-mail: what it is to, and accepting it. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction, useResource } from "../../lib/resource.js";
import { go } from "../../lib/router.js";
import { account, refresh } from "../../lib/session.js";
import { day, t } from "../../lib/words.js";
import { Button, Loaded, Notice } from "../../parts/basics.js";
import { Check, Form } from "../../parts/forms.js";
import { say } from "../../parts/layers.js";
import { Card } from "./frame.js";
import { forgetInvite, keepInvite, pendingInvite } from "./pending.js";

function takeToken() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) keepInvite(token);
  history.replaceState(null, "", location.pathname);
  return pendingInvite() ?? "";
}

export default function Invite() {
  const [token] = useState(takeToken);
  const found = useResource((signal) => (token ? api.invite({ token, signal, anonymous: !account.value }) : Promise.resolve(null)), [token]);
  const [agreed, setAgreed] = useState(false);
  const accept = useAction(async () => {
    await api.acceptInvite({ token, body: agreed ? { accept_management: true } : {} });
    forgetInvite();
    await refresh();
    say(t("You joined {name}.", { name: found.data.team_name ?? found.data.organization_name }));
    go("/people", { replace: true });
  });
  if (!token) {
    return html`<${Card} title=${t("Invitation")}><${Notice} tone="warn" title=${t("This address isn’t complete")}>${t("Open the link of the invitation once more, as it was sent to you.")}<//><//>`;
  }
  return html`<${Card} title=${t("Invitation")}>
    <${Loaded} of=${found} lines=${2}>${(invite) => html`
      <p>${t("You are invited to join {name}.", { name: invite.team_name ?? invite.organization_name })}</p>
      <p class="muted">${t("The invitation is for {email} and works until {day}.", { email: invite.email, day: day(invite.expires_at) })}</p>
      ${
        invite.status !== "pending"
          ? html`<${Notice} tone="warn">${t("It can’t be used any more. Ask for a new one.")}<//>`
          : account.value
            ? html`<${Form} action=${accept} submit=${t("Accept as {name}", { name: account.value.username })}><${Management} invite=${invite} agreed=${agreed} onChange=${setAgreed} /><//>`
            : html`<${Management} invite=${invite} /><div class="row"><${Button} kind="primary" to="/login">${t("Sign in")}<//><${Button} to="/register">${t("Create an account")}<//></div>`
      }`}<//>
  <//>`;
}

/** What it means that an organization manages an account: asked of an account that was there before, told to a new one. */
function Management({ invite, agreed, onChange }) {
  if (!invite.organization_name) return null;
  const name = invite.organization_name;
  const meaning = t("Those who manage its members can then reset your password, and so sign in as you and read what is private to you, and deactivate your account, as long as you belong to no other organization.");
  if (account.value && !invite.managed_by_default)
    return html`<${Check} label=${t("{name} may manage my account", { name })} hint=${meaning} checked=${agreed} onChange=${onChange} />`;
  return html`<${Notice} title=${account.value ? t("{name} will manage your account", { name }) : t("{name} will manage an account that you create now", { name })}>
    <p>${meaning}</p>${!account.value && html`<p>${t("If you have an account already, you are asked first.")}</p>`}<//>`;
}
