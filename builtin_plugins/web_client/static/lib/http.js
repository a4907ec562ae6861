/**
 * One request to the API: the token, a second try after a new sign-in or an outage, readable errors.
 */

import { signal } from "./html.js";
import { API } from "./place.js";
import { refusalOf } from "./refusals.js";
import { account, end, interrupted, refresh, tokenToSend } from "./session.js";
import { plural, t } from "./words.js";

/** A refusal or failure; `message` can be shown as it is, and `said` is the API's English text if that says more. */
export class ApiError extends Error {
  constructor(status, code, message, { fields = {}, requestId = "", retryAfter = 0, detail = null, said = "" } = {}) {
    super(message);
    Object.assign(this, { status, code, fields, requestId, retryAfter, detail, said });
  }
}

/** An answer that ended too early. */
export const cutOff = () => new ApiError(0, "cut_off", t("The connection was lost before the answer was complete."));

/** The JSON of an answer. */
export function jsonOf(answer) {
  return answer.json().catch((error) => {
    throw error.name === "AbortError" ? error : cutOff();
  });
}

const FOLDED = 32_000_000; // bytes: what arrived before is handed to the browser, which keeps large files on disk

/** The body of an answer, which may be large; `onMore` is told how many bytes have arrived. */
export async function received(answer, onMore) {
  const reader = answer.body.getReader();
  let pieces = [];
  let [size, loose] = [0, 0];
  for (;;) {
    const { value, done } = await reader.read().catch((error) => {
      throw error.name === "AbortError" ? error : cutOff();
    });
    if (done) return new Blob(pieces);
    pieces.push(value);
    [size, loose] = [size + value.length, loose + value.length];
    if (loose > FOLDED) [pieces, loose] = [[new Blob(pieces)], 0];
    onMore(size);
  }
}

/** Whether the API can't be reached at the moment. */
export const unreachable = signal(false);

const IDEMPOTENT = new Set(["GET", "PUT", "DELETE"]);
const LONGEST_PAUSE = 8_000;
const TRIES_WHEN_BUSY = 3;
const LONGEST_BUSY = 60; // seconds: people are told of a longer wait

let recovering = null;

/**
 * Send a request and return the `Response`, whose status is a success.
 *
 * `repeatable`: sending it twice does no harm, so it waits until the API is back. With `anonymous`, no token is sent,
 * and a 401 is an ordinary error.
 */
export async function send(method, path, { query, body, signal: stop, headers = {}, repeatable, anonymous } = {}) {
  const options = { method, headers: { Accept: "application/json", ...headers }, signal: stop };
  if (body instanceof FormData || body instanceof Blob) options.body = body;
  else if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers["Content-Type"] = "application/json";
  }
  const url = API + path + queryText(query);
  const patient = repeatable ?? IDEMPOTENT.has(method);
  for (let tries = 1; ; tries += 1) {
    const answer = await attempt(url, options, patient, anonymous);
    if (answer.ok) return answer;
    const error = await errorOf(answer);
    if (answer.status === 401 && !anonymous && account.value) await signInAgain();
    else if (patient && [429, 503].includes(answer.status) && isSoon(error.retryAfter) && tries < TRIES_WHEN_BUSY)
      await pause(error.retryAfter * 1000);
    else throw error;
  }
}

async function attempt(url, options, patient, anonymous) {
  for (;;) {
    const token = anonymous ? null : await tokenToSend();
    const headers = token ? { ...options.headers, Authorization: `Bearer ${token}` } : options.headers;
    try {
      const answer = await fetch(url, { ...options, headers });
      unreachable.value = false;
      return answer;
    } catch (error) {
      if (error.name === "AbortError") throw error;
      if (!(await canBeRead(options.body))) throw new ApiError(0, "unreadable", t("The file was changed, moved or deleted after it was chosen. Choose it again."));
      const back = recover();
      if (!patient) throw new ApiError(0, "unreachable", t("The server can’t be reached. Nothing was lost; try again."));
      await back;
    }
  }
}

/** Whether the files of a form are unchanged since they were chosen: changed ones can never be sent. */
async function canBeRead(body) {
  const files = body instanceof FormData ? [...body.values()].filter((value) => value instanceof Blob) : [];
  return Promise.all(files.map((file) => file.slice(0, 1).arrayBuffer())).then(() => true, () => false);
}

/** A refresh, or else the person's own sign-in over the page; throws when they leave, or somebody else signs in. */
async function signInAgain() {
  const { sub } = account.value;
  if (await refresh()) return;
  const ended = new ApiError(401, "signed_out", t("You are signed out."));
  if (account.value?.sub !== sub) throw ended;
  interrupted.value = true;
  await new Promise((resolve, reject) => {
    const stop = interrupted.subscribe((still) => {
      if (still) return;
      queueMicrotask(() => stop());
      if (account.value?.sub === sub) resolve();
      else reject(ended);
    });
  });
}

/** Leave instead of signing in again. */
export function giveUp() {
  end();
}

/** Poll until the API answers; all waiting callers share one request. */
function recover() {
  unreachable.value = true;
  recovering ??= (async () => {
    for (let wait = 500; unreachable.value; wait = Math.min(wait * 2, LONGEST_PAUSE)) {
      await pause(wait);
      unreachable.value = !(await isAlive());
    }
    recovering = null;
  })();
  return recovering;
}

/** A part of the client, loaded again once the server is back if it was away. */
export async function whenThere(load) {
  try {
    return await load();
  } catch {
    if (!(await isAlive())) await recover();
    return load();
  }
}

async function isAlive() {
  try {
    return (await fetch(`${API}/livez`, { cache: "no-store" })).ok;
  } catch {
    return false;
  }
}

const isSoon = (seconds) => seconds > 0 && seconds <= LONGEST_BUSY;

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

function queryText(query = {}) {
  const kept = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return kept.length ? `?${new URLSearchParams(kept.map(([key, value]) => [key, String(value)]))}` : "";
}

/** What is wrong with a field; "string" and regular expressions mean nothing to people. */
function textOf({ type, msg, ctx }) {
  if (type === "string_pattern_mismatch") return t("It has characters that aren’t allowed here, or not in this place.");
  if (type === "string_too_short" && ctx?.min_length) return plural(ctx.min_length, "At least one character is needed.", "At least {n} characters are needed.");
  if (type === "string_too_long" && ctx?.max_length) return plural(ctx.max_length, "At most one character is allowed.", "At most {n} characters are allowed.");
  return msg;
}

/** The seconds of a `Retry-After`; 0 for dates, which servers of APIs rarely send, and for anything else. */
const secondsIn = (text) => (/^\d{1,9}$/.test(text) ? Number(text) : 0);

const onlyText = (value) => (typeof value === "string" ? value : "");

/** The error in a response: `detail` is a text, or a list with one entry for each wrong field. */
export async function errorOf(answer) {
  const body = await answer.json().catch(() => ({}));
  const { detail, code = `status_${answer.status}` } = body ?? {};
  const fields = Object.create(null); // a field may be called "constructor"
  if (Array.isArray(detail)) {
    for (const problem of detail) fields[problem.loc?.at(-1) ?? ""] ??= textOf(problem);
  }
  const listed = Object.entries(fields).map(([name, text]) => (name ? `${name}: ${text}` : text));
  const retryAfter = secondsIn(answer.headers.get("Retry-After"));
  const text = listed.join("; ") || onlyText(detail?.message);
  const { message, said } = text ? { message: text } : refusalOf(answer.status, code, onlyText(detail), retryAfter);
  return new ApiError(answer.status, code, message || t("The request failed ({status}).", { status: answer.status }), {
    fields,
    detail,
    said,
    requestId: answer.headers.get("X-Request-ID") ?? "",
    retryAfter,
  });
}

/** What a part of the server answers; `otherwise` if that part isn't installed. */
export const ifThere = (work, otherwise) =>
  work.catch((error) => {
    if (error.status === 404) return otherwise;
    throw error;
  });

/** A function that makes one call of the API; `lib/api.js` says how it is used. */
export function call(method, template, fixed = {}) {
  return async ({ query, body, signal, headers, repeatable, anonymous, ...parameters } = {}) => {
    const path = template.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(parameters[name]));
    const { raw, ...options } = { query, body, signal, headers, repeatable, anonymous, ...fixed };
    const answer = await send(method, path, options);
    if (raw) return answer;
    return answer.status === 204 ? null : jsonOf(answer);
  };
}
