/** What only the server knows by name: documents, and for Platform Admins accounts. */

import { api } from "../lib/api.js";
import { go } from "../lib/router.js";
import { isPlatformAdmin, ownFirst } from "../lib/session.js";
import { t } from "../lib/words.js";

const SHORTEST = 2; // letters
const PAUSE = 200; // ms without a further letter
const MOST_BASES = 6;
const OF_EACH = 4;

/** Things with all these words in their names: [{title, about, icon, run}]; what can't be searched is left out. */
export async function searchByName(text, bases, signal) {
  const words = text.trim().split(/\s+/).filter(Boolean);
  if (text.trim().length < SHORTEST) return [];
  await new Promise((done) => setTimeout(done, PAUSE));
  if (signal.aborted) return [];
  const searches = ownFirst(bases).slice(0, MOST_BASES).map((base) => documentsIn(base, words, signal));
  if (isPlatformAdmin.value) searches.push(people(text.trim(), signal));
  const results = await Promise.allSettled(searches);
  return results.flatMap((result) => result.value ?? []);
}

async function documentsIn(base, words, signal) {
  const filters = words.map((value) => ({ type: "contains", key: "filename", value }));
  const query = { filter: JSON.stringify({ type: "and", filters }), limit: OF_EACH };
  const { items } = await api.documents({ kb_id: base.id, query, signal });
  return items.map((item) => ({ title: item.filename, about: base.name, icon: "documents", run: () => go(`/documents/${base.id}/${item.document_id}`) }));
}

async function people(q, signal) {
  const { items } = await api.users({ query: { q, limit: OF_EACH }, signal });
  return items.map(({ username, email }) => ({ title: username, about: email, icon: "people", run: () => go(`/people/accounts?q=${encodeURIComponent(username)}`) }));
}
