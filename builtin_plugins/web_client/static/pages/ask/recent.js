/** Recent conversations, in the navigation: one's own, and those that others share. */

import { classes, html, memo, signal, useEffect, useRef, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { usePolling, useResource, useReturning } from "../../lib/resource.js";
import { Link, path } from "../../lib/router.js";
import { number, t } from "../../lib/words.js";
import { Button, Failure } from "../../parts/basics.js";
import { changed, kept } from "./conversation.js";

const SHOWN = 20;
/** The server's page size, and how many more are shown at a time. */
const MORE = 100;

const PAUSE = 15_000;

/** Whether the part of the server that keeps conversations is out of service: it may come back. */
const away = signal(false);

const NONE = { items: [], total: 0 };

/** The first `shown` ones of a list. */
async function load(fetchPage, shown, signal) {
  const offsets = Array.from({ length: Math.ceil(shown / MORE) }, (_, index) => index * MORE);
  const pages = await Promise.all(offsets.map((offset) => fetchPage({ query: { limit: Math.min(MORE, shown - offset), offset }, signal })));
  // A question asked meanwhile shifts conversations from one page to the next.
  const found = new Map(pages.flatMap((page) => page.items).map((item) => [item.conversation_id, item]));
  return { items: [...found.values()], total: pages[0].total };
}

/** Nothing if conversations aren't kept, or are out of service. */
function unlessAway(error) {
  if (![404, 503].includes(error.status)) throw error;
  return NONE;
}

/** One's own tell whether conversations are kept: a server without the plugin stores none, and no id is sent. */
async function loadOwn(shown, signal) {
  let status = 200;
  const found = await load(api.conversations, shown, signal).catch((error) => {
    ({ status } = error);
    return unlessAway(error);
  });
  kept.value = status === 200;
  away.value = status === 503;
  return found;
}

const loadShared = (shown, signal) => load(api.sharedConversations, shown, signal).catch(unlessAway);

/** {items, total, error, loading, reload, more}; loaded again with each stored turn. */
function useTalks(loadFirst) {
  const shown = useRef(SHOWN);
  const found = useResource((signal) => loadFirst(shown.current, signal), []);
  useEffect(() => {
    if (changed.value) found.reload();
  }, [changed.value]);
  usePolling(found.reload, PAUSE, away.value);
  const more = () => {
    shown.current += MORE;
    found.reload();
  };
  return { ...found, ...(found.data ?? NONE), more };
}

export function Recent() {
  const own = useTalks(loadOwn);
  const shared = useTalks(loadShared);
  const [others, setOthers] = useState(false);
  useReturning(own.reload, !kept.value);
  useReturning(shared.reload);
  if (![own, shared].some(({ items, error }) => items.length || error)) return null;
  const list = others && shared.total ? shared : own;
  const choose = (title, wanted, count) => html`<button type="button" aria-pressed=${(list === shared) === wanted} class=${classes({ pressed: (list === shared) === wanted })}
    onClick=${() => setOthers(wanted)}>${title}${count && html` <span class="count">${count}</span>`}</button>`;
  return html`<nav class="recent" aria-label=${t("Conversations")}>
    <h2>${t("Conversations")}</h2>
    ${shared.total > 0 && html`<div class="recent-choice">${choose(t("Yours"), false)}${choose(t("Shared with you"), true, number(shared.total))}</div>`}
    <${Failure} error=${list.error} onRetry=${list.reload} />
    ${list.items.map((item) => {
      const to = `/ask/${encodeURIComponent(item.conversation_id)}`;
      return html`<${Talk} key=${item.conversation_id} to=${to} current=${path.value === to ? "page" : undefined} title=${item.title || item.first_question || t("Untitled")} />`;
    })}
    ${!list.items.length && !list.error && !list.loading && html`<p class="hint">${t("You have no conversations of your own yet.")}</p>`}
    ${list.items.length < list.total && html`<${Button} kind="quiet" small busy=${list.loading} onClick=${list.more}>${t("Show older ones")}<//>`}
  </nav>`;
}

/** Only drawn again if it changes: there may be thousands. */
const Talk = memo(({ to, title, current }) => html`<${Link} to=${to} aria-current=${current}><span class="clip">${title}</span><//>`);
