/** A shared conversation: who can read it, and the address to send them. */

import { html } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { Link } from "../../lib/router.js";
import { t } from "../../lib/words.js";
import { Copyable, Loaded, Notice } from "../../parts/basics.js";
import { Dialog } from "../../parts/layers.js";
import { StillPrivate, VisibilityBadge } from "../documents/visibility.js";

/** The pipeline, with those of its knowledge bases that the caller sees. */
async function load(id, signal) {
  const [pipelines, bases] = await Promise.all([everything(api.pipelines, { signal }), everything(api.knowledgeBases, { signal })]);
  const pipeline = pipelines.find((item) => item.id === id) ?? { knowledge_base_ids: [] };
  return { ...pipeline, bases: bases.filter((base) => pipeline.knowledge_base_ids.includes(base.id)) };
}

export function Shared({ pipeline: id, onClose }) {
  const found = useResource((signal) => load(id, signal), [id]);
  return html`<${Dialog} title=${t("This conversation is shared")} onClose=${onClose}>
    <${Loaded} of=${found} lines=${2}>${({ name, bases, ...pipeline }) => html`
      <p>${t("Everyone who can use the pipeline “{name}” finds it under “Shared with you”, can read it, and can ask more questions in it. You can also send them this address:", { name: name ?? "" })}</p>
      <${Copyable} text=${location.href} label=${t("Address")} />
      <p class="row"><span class="muted">${t("Visibility of the pipeline:")}</span> <${VisibilityBadge} of=${pipeline} /></p>
      <p class="hint">${t("Administrators of this server can use every pipeline: with the address, they can read it, too.")}</p>
      <${StillPrivate} visibility=${pipeline.visibility} bases=${bases} />
      ${pipeline.visibility === "private" && html`<${Notice} tone="warn" title=${t("No other user can read it yet")}>
        ${t("The pipeline is private.")} <${Link} to="/pipelines">${t("Choose who sees it")}<//><//>`}
    `}<//>
  <//>`;
}
