/** Recent conversations, in the navigation. */

import { html, signal, useEffect } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { usePolling, useResource, useReturning } from "../../lib/resource.js";
import { Link, path } from "../../lib/router.js";
import { t } from "../../lib/words.js";
import { Failure } from "../../parts/basics.js";
import { changed, kept } from "./conversation.js";

const SHOWN = 20;

const PAUSE = 15_000;

/** Whether the part of the server that keeps conversations is out of service: it may come back. */
const away = signal(false);

/** A server without the plugin keeps none: then there is no list, and nothing is sent along. */
async function load(signal) {
  try {
    const { items } = await api.conversations({ query: { limit: SHOWN }, signal });
    kept.value = true;
    away.value = false;
    return items;
  } catch (error) {
    if (![404, 503].includes(error.status)) throw error;
    kept.value = false;
    away.value = error.status === 503;
    return [];
  }
}

export function Recent() {
  const found = useResource(load, []);
  useEffect(() => {
    if (changed.value) found.reload();
  }, [changed.value]);
  usePolling(found.reload, PAUSE, away.value);
  useReturning(found.reload, !kept.value);
  const items = found.data ?? [];
  if (!items.length && !found.error) return null;
  return html`<nav class="recent" aria-label=${t("Conversations")}>
    <h2>${t("Conversations")}</h2>
    <${Failure} error=${found.error} onRetry=${found.reload} />
    ${items.map((item) => {
      const to = `/ask/${encodeURIComponent(item.conversation_id)}`;
      return html`<${Link} key=${item.conversation_id} to=${to} aria-current=${path.value === to ? "page" : undefined}><span class="clip">${item.title || item.first_question || t("Untitled")}</span><//>`;
    })}
  </nav>`;
}
