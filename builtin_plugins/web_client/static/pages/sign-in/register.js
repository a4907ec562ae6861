/** Creating an account, if the server allows it. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction } from "../../lib/resource.js";
import { Link, go } from "../../lib/router.js";
import { begin } from "../../lib/session.js";
import { t } from "../../lib/words.js";
import { Field, Form } from "../../parts/forms.js";
import { Card } from "./frame.js";
import { firstView } from "./pending.js";

export default function Register() {
  const [username, setUsername] = useState("");
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const action = useAction(async () => {
    await api.register({ body: { username, email, password } });
    begin(await api.signIn({ body: { username, password } }));
    go(firstView(), { replace: true });
  });
  const wrong = action.error?.fields ?? {};
  return html`<${Card} title=${t("Create an account")}>
    <${Form} action=${action} submit=${t("Create the account")}>
      <${Field} label=${t("Username")} value=${username} onInput=${setUsername} autocomplete="username" autocapitalize="none" pattern="[A-Za-z0-9_.\\-]+" maxlength="50" required autofocus
        hint=${t("Letters, digits, and _ . -")} error=${wrong.username} />
      <${Field} label=${t("E-mail")} type="email" value=${email} onInput=${setEmail} autocomplete="email" required error=${wrong.email} />
      <${Field} label=${t("Password")} type="password" value=${password} onInput=${setPassword} autocomplete="new-password" minlength="8" required hint=${t("At least 8 characters.")} error=${wrong.password} />
    <//>
    <p class="muted center">${t("Already have an account?")} <${Link} to="/login">${t("Sign in")}<//></p>
  <//>`;
}
