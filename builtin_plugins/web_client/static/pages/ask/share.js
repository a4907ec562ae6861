/** A shared conversation: who can read it, and the address to send them. */

import { html } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { Link } from "../../lib/router.js";
import { t } from "../../lib/words.js";
import { Copyable, Loaded, Notice } from "../../parts/basics.js";
import { Dialog } from "../../parts/layers.js";
import { VisibilityBadge } from "../documents/visibility.js";

export function Shared({ pipeline: id, onClose }) {
  const found = useResource(async (signal) => (await everything(api.pipelines, { signal })).find((item) => item.id === id) ?? {}, [id]);
  return html`<${Dialog} title=${t("This conversation is shared")} onClose=${onClose}>
    <${Loaded} of=${found} lines=${2}>${({ name, ...pipeline }) => html`
      <p>${t("Everyone who can use the pipeline “{name}” can read it and ask more questions in it. Send them this address:", { name: name ?? "" })}</p>
      <${Copyable} text=${location.href} label=${t("Address")} />
      <p class="row"><span class="muted">${t("Who can use the pipeline:")}</span> <${VisibilityBadge} of=${pipeline} /></p>
      ${pipeline.visibility === "private" && html`<${Notice} tone="warn" title=${t("Nobody else can read it yet")}>
        ${t("Only you can use this pipeline.")} <${Link} to="/pipelines">${t("Choose who sees it")}<//><//>`}
    `}<//>
  <//>`;
}
