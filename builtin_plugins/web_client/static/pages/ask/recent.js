/** Recent conversations, in the navigation. */

import { html, signal, useEffect, useRef } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { usePolling, useResource, useReturning } from "../../lib/resource.js";
import { Link, path } from "../../lib/router.js";
import { t } from "../../lib/words.js";
import { Button, Failure } from "../../parts/basics.js";
import { changed, kept } from "./conversation.js";

const SHOWN = 20;
/** The server's page size, and how many more are shown at a time. */
const MORE = 100;

const PAUSE = 15_000;

/** Whether the part of the server that keeps conversations is out of service: it may come back. */
const away = signal(false);

/** A server without the plugin stores none: then there is no list, and no id is sent. */
async function load(shown, signal) {
  try {
    const offsets = Array.from({ length: Math.ceil(shown / MORE) }, (_, index) => index * MORE);
    const pages = await Promise.all(offsets.map((offset) => api.conversations({ query: { limit: Math.min(MORE, shown - offset), offset }, signal })));
    kept.value = true;
    away.value = false;
    // A question asked meanwhile shifts conversations from one page to the next.
    const found = new Map(pages.flatMap((page) => page.items).map((item) => [item.conversation_id, item]));
    return { items: [...found.values()], total: pages[0].total };
  } catch (error) {
    if (![404, 503].includes(error.status)) throw error;
    kept.value = false;
    away.value = error.status === 503;
    return { items: [], total: 0 };
  }
}

export function Recent() {
  const shown = useRef(SHOWN);
  const found = useResource((signal) => load(shown.current, signal), []);
  useEffect(() => {
    if (changed.value) found.reload();
  }, [changed.value]);
  usePolling(found.reload, PAUSE, away.value);
  useReturning(found.reload, !kept.value);
  const { items, total } = found.data ?? { items: [], total: 0 };
  const more = () => {
    shown.current += MORE;
    found.reload();
  };
  if (!items.length && !found.error) return null;
  return html`<nav class="recent" aria-label=${t("Conversations")}>
    <h2>${t("Conversations")}</h2>
    <${Failure} error=${found.error} onRetry=${found.reload} />
    ${items.map((item) => {
      const to = `/ask/${encodeURIComponent(item.conversation_id)}`;
      return html`<${Link} key=${item.conversation_id} to=${to} aria-current=${path.value === to ? "page" : undefined}><span class="clip">${item.title || item.first_question || t("Untitled")}</span><//>`;
    })}
    ${items.length < total && html`<${Button} kind="quiet" small busy=${found.loading} onClick=${more}>${t("Show older ones")}<//>`}
  </nav>`;
}
