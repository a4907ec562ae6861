/** An invitation, from the link in its e-mail: what it is to, and accepting it. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction, useResource } from "../../lib/resource.js";
import { go } from "../../lib/router.js";
import { account, refresh } from "../../lib/session.js";
import { day, t } from "../../lib/words.js";
import { Button, Loaded, Notice } from "../../parts/basics.js";
import { Form } from "../../parts/forms.js";
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
  const found = useResource((signal) => (token ? api.invite({ token, signal }) : Promise.resolve(null)), [token]);
  const accept = useAction(async () => {
    const { message } = await api.acceptInvite({ token });
    forgetInvite();
    await refresh();
    say(message);
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
            ? html`<${Form} action=${accept} submit=${t("Accept as {name}", { name: account.value.username })} />`
            : html`<div class="row"><${Button} kind="primary" to="/login">${t("Sign in")}<//><${Button} to="/register">${t("Create an account")}<//></div>`
      }`}<//>
  <//>`;
}
