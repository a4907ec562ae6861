/** The API's most common refusals, for people who read another language than its English. */

import { language, number, plural, t } from "./words.js";

const LONG = 120; // seconds: more are told in minutes

function tooMany(seconds) {
  if (!seconds) return t("Too many requests. Try again later.");
  if (seconds > LONG) return t("Too many requests. Try again in {n} minutes.", { n: number(Math.ceil(seconds / 60)) });
  return plural(seconds, "Too many requests. Try again in one second.", "Too many requests. Try again in {n} seconds.");
}

/** By code: refusals whose English text adds nothing. */
const PLAIN = {
  invalid_credentials: () => t("The username or the password is wrong."),
  account_disabled: () => t("This account is deactivated; ask an administrator."),
  registration_closed: () => t("Nobody can register here; ask an administrator for an account."),
  wrong_password: () => t("The current password is wrong."),
  same_password: () => t("The new password must not be the current one."),
  wrong_first_code: () => t("This is not the code that the platform printed when it started last."),
  first_account_exists: () => t("Somebody has an account here already. Sign in, or ask an administrator for one."),
  bad_reset_token: () => t("This link was used or replaced, or it has expired; request a new one."),
  slug_taken: () => t("This address is taken; choose another one."),
  team_name_taken: () => t("There is a team with this name already; choose another one."),
  not_owner: () => t("Only the owner may change this."),
  not_pipeline_owner: () => t("Only the owner of a pipeline can publish it."),
  knowledge_base_gone: () => t("You can’t use any knowledge base of this pipeline, or they were deleted. Its owner can share them or choose others."),
  storage_full: () => t("The server’s disk is full. Ask the operator to free some space, then try again."),
};

/** By code: why a model server can't be connected, one for each step of its test. */
const STEPS = {
  model_server_name_unknown: () => t("The name of the server has no address. Check how it is spelled."),
  model_server_not_accepting: () => t("Nothing answers at this address. Check the port, that the server is running, and that it listens for other machines."),
  model_server_tls_invalid: () => t("The server’s certificate is not valid, or the address should begin with http:// instead of https://."),
  model_server_key_refused: () => t("The server refused the key, or needs one."),
  model_server_lacks_model: () => t("The server has no such model any more. Choose another one."),
  model_server_silent: () => t("The server did not answer in time. Check that it is not overloaded, and try again."),
  model_server_unlike: () => t("A server answers at this address, but not as a model server does. Check the port and the path."),
  model_server_failed: () => t("The server answered with an error. Check its log, or your quota there."),
  model_server_forbidden: () => t("This address is not allowed; the operator’s settings decide that."),
};

/** By code: refusals whose English text adds something, such as which limit, which name, what to send instead. */
const BROAD = {
  rate_limited: tooMany,
  already_exists: () => t("There is an account with this name or e-mail address already."),
  last_owner: () => t("The organization has no other active owner; make another member an owner first."),
  storage_limit: () => t("There is no room for this: what you may store is used up. Delete some documents, or ask the operator for more room."),
  queue_limit: () => t("Too many of your files are waiting to be read. Send more when some have been read."),
  payload_too_large: () => t("This is too large for the server."),
  unsupported_document: () => t("The file is damaged, or the server can’t read files of its kind."),
  no_preview: () => t("This file can’t be shown as it looks. Here is its text."),
  empty_document: () => t("The file contains no text."),
  name_taken: () => t("This name is taken; choose another one."),
  limit_reached: () => t("A limit of this server is reached."),
};

const BY_STATUS = {
  403: () => t("You are not allowed to do this."),
  404: () => t("It doesn’t exist, or you have no access to it."),
  413: BROAD.payload_too_large,
  415: BROAD.unsupported_document,
  429: BROAD.rate_limited,
  502: () => t("A service that this needs is not available. Try again later."),
  503: () => t("A service that this needs is not available. Try again later."),
  504: () => t("The server took too long to answer. Try again later."),
  507: PLAIN.storage_full,
};

/** Such as "Document not found", which only says that it doesn’t exist. */
const NOTHING_MORE = /^[\w ]*\bnot found\.?$/i;

/** The text of a code: of `constructor`, for example, there is none. */
const own = (texts, code) => (Object.hasOwn(texts, code) ? texts[code] : undefined);

/** {message, said}: an error's text in the reader's language, and the API's own if it says more. */
export function refusalOf(status, code, text, retryAfter = 0) {
  const step = own(STEPS, code); // the API's text names its fields, which the page calls otherwise
  if (step) return { message: step() };
  const plain = own(PLAIN, code);
  const broad = own(BROAD, code) ?? BY_STATUS[status];
  if (language.value === "en" || (!plain && !broad)) return { message: text };
  return plain ? { message: plain() } : { message: broad(retryAfter), said: NOTHING_MORE.test(text) ? "" : text };
}
