/** What only the server knows by name: documents, and for Platform Admins accounts. */

import { api } from "../lib/api.js";
import { go } from "../lib/router.js";
import { isPlatformAdmin } from "../lib/session.js";
import { t } from "../lib/words.js";

const SHORTEST = 2; // letters
const PAUSE = 200; // ms without a further letter
const OF_EACH = 6;

/** Things with all these words in their names: [{title, about, icon, run}]; what can't be searched is left out. */
export async function searchByName(text, signal) {
  if (text.trim().length < SHORTEST) return [];
  await new Promise((done) => setTimeout(done, PAUSE));
  if (signal.aborted) return [];
  const searches = [documents(text.trim(), signal)];
  if (isPlatformAdmin.value) searches.push(people(text.trim(), signal));
  const results = await Promise.allSettled(searches);
  return results.flatMap((result) => result.value ?? []);
}

async function documents(q, signal) {
  const { items } = await api.documentsNamed({ query: { q, limit: OF_EACH }, signal });
  return items.map((item) => ({ title: item.filename, about: item.knowledge_base_name, icon: "documents", run: () => go(`/documents/${item.knowledge_base_id}/${item.document_id}`) }));
}

async function people(q, signal) {
  const { items } = await api.users({ query: { q, limit: OF_EACH }, signal });
  return items.map(({ username, email }) => ({ title: username, about: email, icon: "people", run: () => go(`/people/accounts?q=${encodeURIComponent(username)}`) }));
}
