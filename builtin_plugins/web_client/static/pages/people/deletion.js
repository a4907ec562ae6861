/** Deleting somebody's account, for Platform Admins: with an heir for what others use. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { ApiError } from "../../lib/http.js";
import { useAction } from "../../lib/resource.js";
import { t } from "../../lib/words.js";
import { Field, Form } from "../../parts/forms.js";
import { Dialog, say } from "../../parts/layers.js";
import { StillShared, isStillShared, reworded } from "../../parts/still-shared.js";

/** The id of the account with exactly this name. */
async function idOf(name) {
  const { items } = await api.users({ query: { q: name, limit: 500 } });
  const found = items.find(({ username }) => username.toLowerCase() === name.toLowerCase());
  if (!found) throw new ApiError(404, "not_found", t("There is no account called {name}.", { name }));
  return found.id;
}

export function DeleteUser({ user, onDone, onClose }) {
  const name = user.username;
  const [typed, setTyped] = useState("");
  const [heir, setHeir] = useState("");
  const [shared, setShared] = useState(null);
  const action = useAction(async () => {
    try {
      const query = heir.trim() ? { heir_id: await idOf(heir.trim()) } : {};
      // Never retried automatically: the account may be gone even if the response was lost.
      await api.deleteUser({ user_id: user.id, query, repeatable: false });
    } catch (error) {
      if (isStillShared(error)) setShared(error);
      if (error.status === 422) throw new ApiError(422, error.code, t("Enter another active account."));
      throw reworded(error, heir.trim() ? t("{name} is not in the team or organization that uses it.", { name: heir.trim() }) : t("Enter the account that takes it over."));
    }
    onClose();
    say(t("{name} is deleted. What belonged to the account is being removed.", { name }));
    onDone();
  });
  return html`<${Dialog} title=${t("Delete the account {name}?", { name })} onClose=${onClose}>
    <${Form} action=${action} submit=${t("Delete the account")} submitKind="danger" disabled=${typed !== name} onCancel=${onClose}>
      <p>${t("They can no longer sign in. Their knowledge bases, pipelines, conversations, published chats and keys are removed for good.")}</p>
      <${Field} label=${t("To confirm, type the username: {name}", { name })} value=${typed} onInput=${setTyped} autocomplete="off" autocapitalize="none" disabled=${action.busy} autofocus />
      <${StillShared} error=${shared} />
      ${shared && html`<${Field} label=${t("Username of the new owner")} value=${heir} onInput=${setHeir} autocomplete="off" autocapitalize="none" disabled=${action.busy} hint=${t("Somebody in the teams and organizations that it is shared with.")} />`}
    <//>
  <//>`;
}
