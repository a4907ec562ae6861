/** Changing one's password. All other sessions end. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction } from "../../lib/resource.js";
import { account, begin } from "../../lib/session.js";
import { t } from "../../lib/words.js";
import { Field, Form } from "../../parts/forms.js";
import { say } from "../../parts/layers.js";

export function ChangePassword({ current = "" }) {
  const [old, setOld] = useState(current);
  const [fresh, setFresh] = useState("");
  const [again, setAgain] = useState("");
  const action = useAction(async () => {
    begin(await api.changePassword({ body: { current_password: old, new_password: fresh } }));
    setOld("");
    setFresh("");
    setAgain("");
    say(t("Your password has been changed. Other devices are signed out."));
  });
  const differs = again !== "" && fresh !== again;
  return html`<${Form} action=${action} submit=${t("Change the password")} disabled=${fresh.length < 8 || fresh !== again}>
    <input type="text" hidden autocomplete="username" value=${account.value?.username} />
    ${!current && html`<${Field} label=${t("Current password")} type="password" value=${old} onInput=${setOld} autocomplete="current-password" required />`}
    <${Field} label=${t("New password")} type="password" value=${fresh} onInput=${setFresh} autocomplete="new-password" minlength="8" required hint=${t("At least 8 characters.")} />
    <${Field} label=${t("New password, again")} type="password" value=${again} onInput=${setAgain} autocomplete="new-password" required error=${differs ? t("The two are not the same.") : ""} />
  <//>`;
}
