/** What others use, which keeps an account from being deleted; taken from the refusal. */

import { html } from "../lib/html.js";
import { ApiError } from "../lib/http.js";
import { t } from "../lib/words.js";

const kinds = () => ({ knowledge_base: t("Knowledge base"), pipeline: t("Pipeline"), listing: t("Plugin in the marketplace") });

export const isStillShared = (error) => error?.code === "still_shared";

/** The refusal in the page's words, since the list already says what others use; any other error unchanged. */
export function reworded(error, message) {
  if (!isStillShared(error)) return error;
  return new ApiError(error.status, error.code, message, { detail: error.detail });
}

export function StillShared({ error }) {
  if (!isStillShared(error)) return null;
  return html`<div class="prose"><p>${t("Others use:")}</p>
    <ul>${error.detail.shared.map(({ kind, id, name }) => html`<li key=${kind + id}>${kinds()[kind] ?? kind}: ${name}</li>`)}</ul></div>`;
}
