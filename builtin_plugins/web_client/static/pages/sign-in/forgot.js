/** Asking for an e-mail with which to choose a new password. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction } from "../../lib/resource.js";
import { Link } from "../../lib/router.js";
import { t } from "../../lib/words.js";
import { Notice } from "../../parts/basics.js";
import { Field, Form } from "../../parts/forms.js";
import { Card } from "./frame.js";

export default function Forgot() {
  const [email, setEmail] = useState("");
  const [sent, setSent] = useState("");
  const action = useAction(async () => {
    const { message } = await api.askForPasswordReset({ body: { email } });
    setSent(message);
  });
  return html`<${Card} title=${t("Forgot your password?")} about=${t("You get an e-mail with a link to choose a new one.")}>
    ${sent ? html`<${Notice} tone="good">${sent}<//>` : html`<${Form} action=${action} submit=${t("Send the e-mail")}>
      <${Field} label=${t("E-mail")} type="email" value=${email} onInput=${setEmail} autocomplete="email" required autofocus />
    <//>`}
    <p class="center"><${Link} to="/login">${t("Back to sign in")}<//></p>
  <//>`;
}
