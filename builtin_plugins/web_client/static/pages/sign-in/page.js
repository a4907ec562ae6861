/** Signing in; and replacing a temporary password before anything else. */

import { html, useEffect, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { apiAddress } from "../../lib/place.js";
import { useAction, usePolling, useResource, useReturning } from "../../lib/resource.js";
import { Link, go, path } from "../../lib/router.js";
import { account, begin, beginWithToken, mustChangePassword, nameIn } from "../../lib/session.js";
import { t } from "../../lib/words.js";
import { Button, Copyable, Failure, Notice } from "../../parts/basics.js";
import { Field, Form } from "../../parts/forms.js";
import { ChangePassword } from "../account/password.js";
import { FirstAccount } from "./first.js";
import { Card } from "./frame.js";
import { firstView } from "./pending.js";
import { signOut } from "./sign-out.js";

const PAUSE = 15_000; // each check logs a line in the terminal where the first account is about to be created

export default function SignIn({ problem, offered: token = "", firstCode }) {
  const [code, setCode] = useState(firstCode); // also once others have registered
  const offered = useResource((signal) => api.capabilities({ signal }));
  const fresh = offered.data?.first_account_wanted ?? false;
  const first = fresh || Boolean(code && offered.data);
  usePolling(offered.reload, PAUSE, fresh);
  useReturning(offered.reload, fresh);
  useEffect(() => (fresh ? () => setCode("") : undefined), [fresh]); // it was made in a terminal meanwhile
  const signedIn = account.value !== null;
  const [typed, setTyped] = useState("");
  const [username, setUsername] = useState("");
  useEffect(() => {
    if (signedIn && !mustChangePassword.value && path.value === "/login") go(firstView(), { replace: true });
  }, [signedIn, mustChangePassword.value]);
  if (signedIn && mustChangePassword.value) return html`<${MustChange} typed=${typed} />`;
  const { registration_mode: mode, password_reset_email: mail, sign_in_methods: methods = [] } = offered.data ?? {};
  const name = { username, setUsername };
  return html`<${Card} title=${first ? t("Welcome! Make the first account") : t("Sign in")} about=${t("Ask your own documents, and see where each answer comes from.")}>
    ${problem && html`<${Notice} tone="bad">${problem}<//>`}
    ${nameIn(token) && html`<${Continue} token=${token} />`}
    <${Failure} error=${offered.error} onRetry=${offered.reload} />
    ${first ? html`<${FirstAccount} code=${code} ...${name} />` : html`<${Password} mail=${mail} onTyped=${setTyped} ...${name} />`}
    ${methods.length > 0 && html`<div class="or"><span>${t("or")}</span></div>`}
    ${methods.map((method) => html`<${Elsewhere} key=${method.name} method=${method} />`)}
    ${first && !fresh && html`<${Button} kind="link" onClick=${() => setCode("")}>${t("Sign in")}<//>`}
    ${mode === "open" && !first && html`<p class="muted center">${t("No account yet?")} <${Link} to="/register">${t("Create an account")}<//></p>`}
    ${!first && html`<details class="first-start"><summary>${t("Can’t sign in?")}</summary><p>${t("Whoever runs this server can set your password in a terminal there:")}</p>
      <${Copyable} text="./setup.sh users reset-password YOURNAME" label=${t("Command")} /></details>`}
  <//>`;
}

function Password({ mail, onTyped, username, setUsername }) {
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

/** To an identity provider, and back to the requested view. */
function Elsewhere({ method }) {
  const leave = () => {
    sessionStorage.setItem("platform.return", path.value === "/login" ? firstView() : path.value);
    location.assign(apiAddress(method.login_url));
  };
  return html`<${Button} class="wide" onClick=${leave}>${t("Sign in with {name}", { name: method.label })}<//>`;
}

/** Single sign-on that this tab didn't ask for: the person confirms whose account it is. */
const Continue = ({ token }) => html`<${Notice} tone="warn" title=${t("Continue as {name}?", { name: nameIn(token) })}
  action=${html`<${Button} small onClick=${() => beginWithToken(token)}>${t("Continue")}<//>`}>
  ${t("You followed a link that signs you in. Go on only if this is your own account.")}
<//>`;

function MustChange({ typed }) {
  return html`<${Card} title=${t("Choose a new password")} about=${t("An administrator set a temporary one. Choose your own to go on.")}
    foot=${html`<${Button} kind="link" onClick=${signOut}>${t("Sign out")}<//>`}>
    <${ChangePassword} current=${typed} />
  <//>`;
}
