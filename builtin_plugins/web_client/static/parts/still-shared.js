/** What others use and keeps an account from being deleted, from the refusal. */

import { html } from "../lib/html.js";
import { ApiError } from "../lib/http.js";
import { t } from "../lib/words.js";

const kinds = () => ({ knowledge_base: t("Knowledge base"), pipeline: t("Pipeline"), listing: t("Plugin in the marketplace") });

export const isStillShared = (error) => error?.code === "still_shared";

/** The refusal in words of the page, as the list says already what others use; any other error as it is. */
export function reworded(error, message) {
  if (!isStillShared(error)) return error;
  return new ApiError(error.status, error.code, message, { detail: error.detail });
}

export function StillShared({ error }) {
  if (!isStillShared(error)) return null;
  return html`<div class="prose"><p>${t("Others use:")}</p>
    <ul>${error.detail.shared.map(({ kind, id, name }) => html`<li key=${kind + id}>${kinds()[kind] ?? kind}: ${name}</li>`)}</ul></div>`;
}
