/** For a session that ends during work: signing in over the page, which stays as it is. */

import { html, useState } from "../lib/html.js";
import { api } from "../lib/api.js";
import { giveUp } from "../lib/http.js";
import { useAction } from "../lib/resource.js";
import { account, begin } from "../lib/session.js";
import { t } from "../lib/words.js";
import { Button } from "./basics.js";
import { Field, Form } from "./forms.js";
import { Dialog } from "./layers.js";

export function SignInAgain() {
  const name = account.value?.username ?? "";
  const [password, setPassword] = useState("");
  const action = useAction(async () => {
    begin(await api.signIn({ body: { username: name, password } }));
  });
  return html`<${Dialog} title=${t("Your session has ended")} closable=${false}>
    <p class="muted">${t("Sign in again to go on where you are. What you typed is still there.")}</p>
    <${Form} action=${action} submit=${t("Sign in")}>
      <${Field} label=${t("Username")} value=${name} readonly autocomplete="username" />
      <${Field} label=${t("Password")} type="password" value=${password} onInput=${setPassword} autocomplete="current-password" required autofocus />
      <${Button} kind="link" onClick=${giveUp}>${t("Sign out instead")}<//>
    <//>
  <//>`;
}
