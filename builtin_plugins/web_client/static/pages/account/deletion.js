/** Deleting your own account, for good. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction, useResource } from "../../lib/resource.js";
import { account } from "../../lib/session.js";
import { t } from "../../lib/words.js";
import { Button, Notice } from "../../parts/basics.js";
import { Field, Form } from "../../parts/forms.js";
import { Dialog, say } from "../../parts/layers.js";
import { StillShared, reworded } from "../../parts/still-shared.js";
import { signOut } from "../sign-in/sign-out.js";

export function DeleteAccount() {
  const [asking, setAsking] = useState(false);
  return html`<section class="panel"><h2>${t("Delete the account")}</h2>
    <p class="muted">${t("Your account and everything that belongs to it are removed for good.")}</p>
    <div class="row"><${Button} icon="trash" kind="danger" onClick=${() => setAsking(true)}>${t("Delete your account")}<//></div>
    ${asking && html`<${Ask} onClose=${() => setAsking(false)} />`}
  </section>`;
}

function Ask({ onClose }) {
  const name = account.value.username;
  const ways = useResource((signal) => api.capabilities({ signal }));
  const [typed, setTyped] = useState("");
  const [password, setPassword] = useState("");
  const action = useAction(async () => {
    // Never retried automatically: the account may be gone even if the response was lost.
    await api.deleteOwnAccount({ body: { password: password || null }, repeatable: false }).catch((error) => {
      throw reworded(error, t("Delete it or make it private first, or ask an administrator of this server to delete your account."));
    });
    signOut();
    say(t("Your account is deleted."));
  });
  const elsewhere = ways.data?.sign_in_methods?.length > 0;
  return html`<${Dialog} title=${t("Delete your account?")} onClose=${onClose}>
    <${Form} action=${action} submit=${t("Delete your account")} submitKind="danger" disabled=${typed !== name || !(password || elsewhere)} onCancel=${onClose}>
      <p>${t("You can no longer sign in. Your knowledge bases, pipelines, conversations, published chats and keys are removed for good.")}</p>
      <${Notice}>${t("The audit log and purchase records are kept, and so is what you asked in other people’s conversations.")}<//>
      <${Field} label=${t("To confirm, type your username: {name}", { name })} value=${typed} onInput=${setTyped} autocomplete="off" autocapitalize="none" disabled=${action.busy} autofocus />
      <${Field} label=${t("Password")} type="password" value=${password} onInput=${setPassword} autocomplete="current-password" disabled=${action.busy} required=${!elsewhere} hint=${elsewhere ? t("Leave it empty if you sign in through an identity provider.") : ""} />
      <${StillShared} error=${action.error} />
    <//>
  <//>`;
}
