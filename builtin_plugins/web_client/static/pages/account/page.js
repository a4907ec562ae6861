/** The user's account: name, password, language, signing out, becoming Platform Admin. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction, useResource } from "../../lib/resource.js";
import { account, isAdmin, isPlatformAdmin, refresh } from "../../lib/session.js";
import { LANGUAGES, chooseLanguage, language, nameOfLanguage, t } from "../../lib/words.js";
import { Badge, Button, Failure, Head } from "../../parts/basics.js";
import { Field, Form } from "../../parts/forms.js";
import { Confirm, say } from "../../parts/layers.js";
import { signOut, signOutEverywhere } from "../sign-in/sign-out.js";
import { YourData } from "./data.js";
import { DeleteAccount } from "./deletion.js";
import { ChangePassword } from "./password.js";
import { Usage } from "./usage.js";

export default function Account() {
  const { username, email, role } = account.value ?? {};
  const [leaving, setLeaving] = useState(false);
  return html`<div class="page narrow">
    <${Head} title=${t("Your account")} />
    <section class="panel">
      <dl class="facts">
        <dt>${t("Username")}</dt><dd>${username}</dd>
        <dt>${t("E-mail")}</dt><dd>${email}</dd>
        <dt>${t("Role")}</dt><dd class="row"><${Badge}>${role === "admin" ? t("Administrator") : t("User")}<//>${isPlatformAdmin.value && html`<${Badge} tone="accent">${t("Administrator of the platform")}<//>`}</dd>
      </dl>
      <${Field} as="select" label=${t("Language")} value=${language.value} onInput=${chooseLanguage}>
        ${LANGUAGES.map((code) => html`<option value=${code} lang=${code}>${nameOfLanguage(code)}</option>`)}
      <//>
    </section>
    ${isAdmin.value && !isPlatformAdmin.value && html`<${Claim} />`}
    <section class="panel"><h2>${t("Password")}</h2><${ChangePassword} /></section>
    <section class="panel"><h2>${t("Sessions")}</h2>
      <p class="muted">${t("Signing out everywhere ends your sessions on all devices. Keys for programs stay.")}</p>
      <div class="row"><${Button} icon="sign_out" onClick=${signOut}>${t("Sign out")}<//><${Button} onClick=${() => setLeaving(true)}>${t("Sign out everywhere")}<//></div>
    </section>
    <${Usage} />
    <${YourData} />
    <${DeleteAccount} />
    ${leaving && html`<${Confirm} title=${t("Sign out everywhere?")} confirm=${t("Sign out everywhere")} onConfirm=${signOutEverywhere} onClose=${() => setLeaving(false)}>
      <p>${t("You have to sign in again on every device, this one included.")}</p><//>`}
  </div>`;
}

/** On an upgraded server, an administrator can become its first Platform Admin with a code from the terminal. */
function Claim() {
  const wanted = useResource((signal) => api.setupCodeWanted({ signal }));
  const [code, setCode] = useState("");
  const action = useAction(async () => {
    await api.claimWithSetupCode({ body: { code } });
    await refresh();
    say(t("You are the platform’s administrator now."));
    wanted.reload();
  });
  if (wanted.error && wanted.error.status !== 404) return html`<${Failure} error=${wanted.error} onRetry=${wanted.reload} />`;
  if (!wanted.data?.setup_code_required) return null;
  return html`<section class="panel"><h2>${t("Become the platform’s administrator")}</h2>
    <p class="muted">${t("Nobody administers this server across organizations yet. The command “platform-admin setup-code” prints a code on the server.")}</p>
    <${Form} action=${action} submit=${t("Claim")} disabled=${!code.trim()}>
      <${Field} label=${t("Setup code")} value=${code} onInput=${setCode} placeholder="XXXXXX-XXXXXX-XXXXXX" autocomplete="one-time-code" />
    <//>
  </section>`;
}
