/** Addresses: each view has its own, can be linked, reloaded and opened in another tab. */

import { computed, html, signal } from "./html.js";
import { BASE } from "./place.js";

const here = signal(read());
let at = history.state?.at ?? 0; // the place of what is shown among the entries of the history
let isReturning = false;
let gate = () => false;

/** The path without the client's base, and the query. */
export const path = computed(() => here.value.path);
export const query = computed(() => new URLSearchParams(here.value.search));

function read({ pathname, search } = location) {
  const found = pathname.startsWith(BASE) ? pathname.slice(BASE.length) : pathname;
  return { path: `/${found.replace(/^\/+|\/+$/g, "")}`, search };
}

/** What `go` takes to get to a full address of the client. */
export function placeAt(address) {
  const { path: to, search } = read(new URL(address));
  return to + search;
}

/** The full address of a path of the client. */
export const addressOf = (to) => BASE + (to === "/" && BASE ? "" : to);

/**
 * Have `fn` asked before another view is shown, for browsers without such events: it is called with what leads there, and
 * returns whether this view stays. Returns what ends it.
 */
export function guard(fn) {
  gate = fn;
  return () => {
    gate = () => false;
  };
}

/** Go to a view. With `replace`, Back does not return to this one. */
export function go(to, { replace = false } = {}) {
  if (!replace && gate(() => go(to))) return;
  history[replace ? "replaceState" : "pushState"]({ at: replace ? at : at + 1 }, "", addressOf(to));
  at = history.state?.at ?? at;
  here.value = read();
  const isThere = location.href === new URL(addressOf(to), location.href).href; // else somebody is asked first
  if (!replace && isThere) window.scrollTo(0, 0);
}

/** The browser has gone there already, so it is sent back until somebody has answered. */
addEventListener("popstate", () => {
  if (isReturning) {
    isReturning = false;
    return;
  }
  const place = read();
  const isElsewhere = place.path !== path.value || place.search !== here.value.search;
  const next = history.state?.at ?? at - 1;
  const steps = next - at;
  if (steps && isElsewhere && gate(() => history.go(steps))) {
    isReturning = true;
    history.go(-steps);
    return;
  }
  at = next;
  here.value = place;
});

/** Change parts of the query; empty values are left out. */
export function setQuery(changes) {
  const found = new URLSearchParams(here.value.search);
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") found.delete(key);
    else found.set(key, value);
  }
  const text = found.toString();
  go(path.value + (text ? `?${text}` : ""), { replace: true });
}

/** A link within the client; other clicks than a plain one are the browser's. */
export function Link({ to, children, ...rest }) {
  const follow = (event) => {
    if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(to);
  };
  return html`<a href=${addressOf(to)} onClick=${follow} ...${rest}>${children}</a>`;
}

/** The values of `:names` in a pattern such as "/documents/:base"; null where it doesn't fit. */
export function match(pattern, actual) {
  const wanted = pattern.split("/");
  const parts = actual.split("/");
  if (wanted.length !== parts.length) return null;
  const values = {};
  for (const [index, part] of wanted.entries()) {
    if (part.startsWith(":")) values[part.slice(1)] = decoded(parts[index]);
    else if (part !== parts[index]) return null;
  }
  return values;
}

/** A decoded part of an address; one with invalid encoding stays as it is. */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
