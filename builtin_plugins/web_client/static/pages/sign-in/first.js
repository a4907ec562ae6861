/** Nobody has an account yet: the first one is made here, or in a terminal, which the page notices. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction } from "../../lib/resource.js";
import { begin } from "../../lib/session.js";
import { t } from "../../lib/words.js";
import { Copyable } from "../../parts/basics.js";
import { Field, Form } from "../../parts/forms.js";

/** `code` came with the link that the terminal shows; without it, it is asked for. */
export function FirstAccount({ code: given = "", username, setUsername }) {
  const [code, setCode] = useState(given);
  const [password, setPassword] = useState("");
  const action = useAction(async () => begin(await api.makeFirstAccount({ body: { code: code.trim(), username, password } })));
  const wrong = action.error?.fields ?? {};
  return html`<${Form} action=${action} submit=${t("Create the account")}>
      ${!given && html`<${Field} label=${t("Code")} value=${code} onInput=${setCode} autocomplete="off" autocapitalize="none" required hint=${t("It ends the link that the terminal shows, in which the platform was started.")} error=${wrong.code} />`}
      <${Field} label=${t("Username")} name="username" value=${username} onInput=${setUsername} autocomplete="username" autocapitalize="none" pattern="[A-Za-z0-9_.\\-]+" maxlength="50" required autofocus=${Boolean(given)}
        hint=${t("Letters, digits, and _ . -")} error=${wrong.username} />
      <${Field} label=${t("Password")} name="password" type="password" value=${password} onInput=${setPassword} autocomplete="new-password" minlength="8" required hint=${t("At least 8 characters.")} error=${wrong.password} />
    <//>
    <details class="first-start"><summary>${t("Make it in a terminal instead")}</summary>
      <ol class="first-steps">
        <li>${t("Open a second terminal on the server, in the same folder.")}</li>
        <li>${t("Create the administrator; choose your own name:")}<${Copyable} text="./setup.sh users create YOURNAME --admin" label=${t("Command")} /></li>
        <li>${t("This page then asks you to sign in.")}</li>
      </ol></details>`;
}
