/** Choosing a new password with the token of an e-mail. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction } from "../../lib/resource.js";
import { Link, go } from "../../lib/router.js";
import { t } from "../../lib/words.js";
import { Notice } from "../../parts/basics.js";
import { Field, Form } from "../../parts/forms.js";
import { say } from "../../parts/layers.js";
import { Card } from "./frame.js";

function takeToken() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? "";
  history.replaceState(null, "", location.pathname);
  return token;
}

export default function Reset() {
  const [token] = useState(takeToken);
  const [password, setPassword] = useState("");
  const action = useAction(async () => {
    await api.confirmPasswordReset({ body: { token, new_password: password } });
    say(t("Your password has been changed. Sign in with the new one."));
    go("/login", { replace: true });
  });
  return html`<${Card} title=${t("Choose a new password")}>
    ${!token && html`<${Notice} tone="warn">${t("This address is incomplete. Open the link in the e-mail again.")}<//>`}
    <${Form} action=${action} submit=${t("Change the password")} disabled=${!token}>
      <${Field} label=${t("New password")} type="password" value=${password} onInput=${setPassword} autocomplete="new-password" minlength="8" required autofocus hint=${t("At least 8 characters.")} />
    <//>
    <p class="center"><${Link} to="/login">${t("Back to sign in")}<//></p>
  <//>`;
}
