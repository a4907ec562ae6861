/** Signing out: in this browser, or everywhere. */

import { api } from "../../lib/api.js";
import { go } from "../../lib/router.js";
import { end } from "../../lib/session.js";

/** In all of the account's tabs in this browser. */
export function signOut() {
  end();
  go("/login", { replace: true });
}

/** On every device; an account of an identity provider is signed out there too. */
export async function signOutEverywhere() {
  const { sign_in_methods: methods = [] } = await api.capabilities();
  const answer = methods.length ? await api.signOutAtProvider() : await api.signOutEverywhere();
  signOut();
  if (answer?.logout_url) location.assign(answer.logout_url);
}
