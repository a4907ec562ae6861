/**
 * Who is signed in. The token lives in this tab: in memory, and in sessionStorage so that a reload keeps it.
 * A new tab asks the others; signing out tells them.
 */

import { computed, effect, signal } from "./html.js";
import { API, ROOT } from "./place.js";

const KEPT = `platform.session${ROOT}`; // two platforms on one site share its storage
const EARLY = 0.25; // share of a token's life: when this much is left, it is exchanged
const SHORTEST_WAIT = 5_000;
const LONGEST_EXCHANGE = 10_000;

const session = signal(null);
let timer = 0;
let refreshing = null;
let letGo = null;

/** The claims of the token, or null. They are hints: the API decides. */
export const account = computed(() => session.value?.claims ?? null);

/** Whether a temporary password must be replaced before anything else. */
export const mustChangePassword = computed(() => session.value?.mustChange ?? false);

/** Set while a signed-in person has to sign in again; the page stays as it is underneath. */
export const interrupted = signal(false);

export const isAdmin = computed(() => account.value?.role === "admin" || account.value?.platform_admin === true);
/** Whether there may be entries of the audit log for this account: its own organizations', or all. */
export const readsAuditLog = computed(() => isAdmin.value || (account.value?.orgs ?? []).some((one) => ["owner", "admin"].includes(one.role)));
/** Only the instance role: it sees and changes everything that has an owner (spec 5.7). */
export const isAdministrator = computed(() => account.value?.role === "admin");

/** Whether a knowledge base, pipeline or job is one's own. */
export const isOwn = (row) => String(row.owner_id ?? row.owner_user_id) === String(account.value?.sub);

/** Whether it may be changed: by its owner and by administrators. */
export const owns = (row) => isAdministrator.value || isOwn(row);

/** The same rows, one's own first. */
export const ownFirst = (rows) => [...rows.filter(isOwn), ...rows.filter((row) => !isOwn(row))];

/** Call `fn` when another account than the one before signs in in this tab. */
export function onNextAccount(fn) {
  let last = null;
  effect(() => {
    const { sub = last } = account.value ?? {};
    if (sub !== last && last !== null) fn();
    last = sub;
  });
}

/** Where this tab keeps what the account is typing, until it signs out. */
export const draftsKey = () => `platform.drafts.${account.value?.sub}`;

export const isPlatformAdmin = computed(() => account.value?.platform_admin === true);

const tabs = "BroadcastChannel" in window ? new BroadcastChannel(KEPT) : null;
tabs?.addEventListener("message", ({ data }) => {
  if (data.kind === "ask" && session.value) tabs.postMessage({ kind: "session", session: forOthers() });
  if (data.kind === "session" && !session.value) keep(data.session);
  if (data.kind === "signed-out" && data.sub === account.value?.sub) forget();
});

/** Restore the session after a reload or from another tab; returns whether somebody is signed in. */
export async function resume() {
  const kept = parsed(sessionStorage.getItem(KEPT));
  if (kept) {
    keep(kept);
    if (remaining() < 60_000) await refresh();
  } else if (tabs) {
    await fromOtherTabs();
  }
  return session.value !== null;
}

async function fromOtherTabs() {
  const patience = await patienceWithTabs();
  if (!patience) return;
  tabs.postMessage({ kind: "ask" });
  await new Promise((resolve) => {
    const stop = setTimeout(resolve, patience);
    tabs.addEventListener("message", ({ data }) => {
      if (data.kind === "session") {
        clearTimeout(stop);
        resolve();
      }
    });
  });
}

/** Milliseconds to wait for another tab's answer: if none has a session, if one has, or if unknown (without HTTPS). */
async function patienceWithTabs() {
  const known = await navigator.locks?.query().catch(() => null);
  if (!known) return 80;
  return known.held.some((lock) => lock.name === KEPT) ? 1_000 : 0;
}

/** Hold a lock while there is a session here, so that other tabs know that asking is worthwhile. */
function hold() {
  if (letGo || !navigator.locks) return;
  const held = new Promise((resolve) => {
    letGo = resolve;
  });
  navigator.locks.request(KEPT, { mode: "shared" }, () => held).catch(() => {});
}

/** Begin a session with the response of a sign-in. */
export function begin({ access_token: token, expires_in: seconds, user }) {
  const mustChange = user?.must_change_password ?? false;
  keep({ token, mustChange, until: Date.now() + seconds * 1000, lifetime: seconds * 1000 });
  interrupted.value = false;
}

/** The name in a token; empty if it isn't one. */
export const nameIn = (token) => claimsOf(token)?.username ?? "";

/** Begin a session with a token alone, as single sign-on leaves it in the address. */
export function beginWithToken(token) {
  const claims = claimsOf(token);
  if (claims) begin({ access_token: token, expires_in: claims.exp - claims.iat });
}

/** The token to send, fresh enough to arrive; null for nobody. */
export async function tokenToSend() {
  if (session.value && remaining() < SHORTEST_WAIT) await refresh();
  return session.value?.token ?? null;
}

/** Exchange the token for a new one; returns whether that worked. Simultaneous callers share one exchange. */
export function refresh() {
  refreshing ??= exchange().finally(() => {
    refreshing = null;
  });
  return refreshing;
}

async function exchange() {
  const used = session.value;
  if (!used) return false;
  let answer;
  let fresh;
  try {
    const headers = { Authorization: `Bearer ${used.token}` };
    const signal = AbortSignal.timeout(LONGEST_EXCHANGE);
    answer = await fetch(`${API}/v1/auth/refresh`, { method: "POST", headers, signal });
    if (answer.ok) fresh = await answer.json();
  } catch {
    schedule(SHORTEST_WAIT);
    return false;
  }
  // Meanwhile, somebody signed in or out here: the response belongs to a session that is over.
  if (session.value !== used) return session.value?.claims.sub === used.claims.sub;
  if (answer.ok) begin({ ...fresh, user: { must_change_password: used.mustChange } });
  else if (answer.status === 429) schedule(15_000);
  return answer.ok;
}

/** End this tab's session, and those of the same account in the browser's other tabs. */
export function end() {
  const sub = account.value?.sub;
  forget();
  tabs?.postMessage({ kind: "signed-out", sub });
}

function keep(found) {
  const claims = claimsOf(found.token);
  if (!claims) return;
  session.value = { ...found, claims };
  hold();
  sessionStorage.setItem(KEPT, JSON.stringify(forOthers()));
  schedule(Math.max(remaining() - found.lifetime * EARLY, SHORTEST_WAIT));
}

function forget() {
  sessionStorage.removeItem(draftsKey());
  clearTimeout(timer);
  letGo?.();
  letGo = null;
  sessionStorage.removeItem(KEPT);
  session.value = null;
  interrupted.value = false;
}

function forOthers() {
  const { token, mustChange, until, lifetime } = session.value;
  return { token, mustChange, until, lifetime };
}

const remaining = () => (session.value?.until ?? 0) - Date.now();

function schedule(milliseconds) {
  clearTimeout(timer);
  timer = setTimeout(refresh, milliseconds);
}

// No timers run while a laptop sleeps.
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && session.value && remaining() < session.value.lifetime * EARLY) refresh();
});

function claimsOf(token) {
  try {
    const text = atob(token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/"));
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(text, (char) => char.charCodeAt(0))));
  } catch {
    return null;
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
