/** Signing in; and replacing a temporary password before anything else. */

import { html, useEffect, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { API } from "../../lib/place.js";
import { useAction, useResource } from "../../lib/resource.js";
import { Link, go, path } from "../../lib/router.js";
import { account, begin, mustChangePassword } from "../../lib/session.js";
import { t } from "../../lib/words.js";
import { Button, Copyable, Failure, Notice } from "../../parts/basics.js";
import { Field, Form } from "../../parts/forms.js";
import { ChangePassword } from "../account/password.js";
import { Card } from "./frame.js";
import { signOut } from "./sign-out.js";

export default function SignIn({ problem }) {
  const offered = useResource((signal) => api.capabilities({ signal }));
  const signedIn = account.value !== null;
  const [typed, setTyped] = useState("");
  useEffect(() => {
    if (signedIn && !mustChangePassword.value && path.value === "/login") go("/", { replace: true });
  }, [signedIn, mustChangePassword.value]);
  if (signedIn && mustChangePassword.value) return html`<${MustChange} typed=${typed} />`;
  const { registration_mode: mode, password_reset_email: mail, sign_in_methods: methods = [] } = offered.data ?? {};
  return html`<${Card} title=${t("Sign in")} about=${t("Ask your own documents, and see where each answer comes from.")}>
    ${problem && html`<${Notice} tone="bad">${problem}<//>`}
    <${Failure} error=${offered.error} onRetry=${offered.reload} />
    <${Password} mail=${mail} onTyped=${setTyped} />
    ${methods.length > 0 && html`<div class="or"><span>${t("or")}</span></div>`}
    ${methods.map((method) => html`<${Elsewhere} key=${method.name} method=${method} />`)}
    ${mode === "open" && html`<p class="muted center">${t("No account yet?")} <${Link} to="/register">${t("Create an account")}<//></p>`}
    <${FirstStart} />
  <//>`;
}

function Password({ mail, onTyped }) {
  const [username, setUsername] = useState("");
  const [password, setPassword] = useState("");
  const action = useAction(async () => {
    onTyped(password);
    begin(await api.signIn({ body: { username, password } }));
  });
  return html`<${Form} action=${action} submit=${t("Sign in")}>
    <${Field} label=${t("Username")} name="username" value=${username} onInput=${setUsername} autocomplete="username" autocapitalize="none" required autofocus />
    <${Field} label=${t("Password")} name="password" type="password" value=${password} onInput=${setPassword} autocomplete="current-password" required />
    ${mail && html`<${Link} class="aside-link" to="/forgot-password">${t("Forgot your password?")}<//>`}
  <//>`;
}

/** Off to an identity provider, and back to where one wanted to be. */
function Elsewhere({ method }) {
  const leave = () => {
    sessionStorage.setItem("platform.return", path.value === "/login" ? "/" : path.value);
    location.assign(new URL(method.login_url, API || location.origin));
  };
  return html`<${Button} class="wide" onClick=${leave}>${t("Sign in with {name}", { name: method.label })}<//>`;
}

function FirstStart() {
  return html`<details class="first-start">
    <summary>${t("First start of this server?")}</summary>
    <p>${t("Create the first administrator in a terminal on the server, then sign in here:")}</p>
    <${Copyable} text="./setup.sh users create YOURNAME --admin" label=${t("Command")} />
  </details>`;
}

function MustChange({ typed }) {
  return html`<${Card} title=${t("Choose a new password")} about=${t("An administrator set a temporary one. Choose your own to go on.")}
    foot=${html`<${Button} kind="link" onClick=${signOut}>${t("Sign out")}<//>`}>
    <${ChangePassword} current=${typed} />
  <//>`;
}
