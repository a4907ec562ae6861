/** Offering the user's own plugin in the marketplace. It begins as a draft, which is then submitted. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction } from "../../lib/resource.js";
import { go, setQuery } from "../../lib/router.js";
import { account } from "../../lib/session.js";
import { t } from "../../lib/words.js";
import { Field, Form } from "../../parts/forms.js";
import { Dialog } from "../../parts/layers.js";

export function NewListing({ onClose }) {
  const [values, setValues] = useState({ name: "", display_name: "", description: "", author: account.value?.username ?? "", repository_url: "", package: "", version_range: "" });
  const action = useAction(async () => {
    const filled = Object.fromEntries(Object.entries(values).map(([key, text]) => [key, text.trim() || null]));
    const made = await api.createListing({ body: { ...filled, display_name: filled.display_name ?? filled.name } });
    setQuery({ new: null });
    go(`/plugins/marketplace/${made.id}`);
  });
  const wrong = action.error?.fields ?? {};
  const field = (name, label, rest = {}) => html`<${Field} label=${label} value=${values[name]} onInput=${(text) => setValues({ ...values, [name]: text })} error=${wrong[name]} ...${rest} />`;
  return html`<${Dialog} title=${t("Offer a plugin")} onClose=${onClose}>
    <${Form} action=${action} submit=${t("Create a draft")} onCancel=${onClose} disabled=${!values.name.trim() || !values.author.trim()}>
      ${field("name", t("Name"), { hint: t("As the plugin calls itself."), required: true, autofocus: true })}
      ${field("display_name", t("Title"), { optional: true })}
      ${field("description", t("Description"), { as: "textarea", optional: true })}
      ${field("author", t("Author"), { required: true })}
      ${field("package", t("Package"), { hint: t("The name by which pip installs it."), optional: true })}
      ${field("version_range", t("Versions"), { placeholder: ">=1.2,<2", optional: true })}
      ${field("repository_url", t("Source code"), { type: "url", placeholder: "https://", optional: true })}
    <//>
  <//>`;
}
