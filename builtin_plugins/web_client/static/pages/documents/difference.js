/** Where two versions of a document differ. */

import { html } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { Link } from "../../lib/router.js";
import { dateTime, number, plural, t } from "../../lib/words.js";
import { Loaded, Notice } from "../../parts/basics.js";

const AT_ONCE = 200;
const WORDS = /\s+|[^\s]+/gu;

const load = (base, id, against, signal) => api.difference({ kb_id: base, document_id: id, query: { against, limit: AT_ONCE }, signal });

export function Difference({ base, id, against }) {
  const found = useResource((signal) => load(base, id, against, signal), [base, id, against]);
  return html`<${Loaded} of=${found}>${({ earlier, later, items, total }) => html`<section class="stack" aria-label=${t("Differences")}>
    <p class="muted">${t("From version {earlier} to version {later}:", { earlier: number(earlier.version), later: number(later.version) })} ${total ? plural(total, "one place differs", "{n} places differ") : t("no sentence differs")}</p>
    <ul class="faint">${[earlier, later].map((version) => html`<li key=${version.version}>${uploaded(version)}</li>`)}</ul>
    ${total > items.length && html`<p class="faint">${t("The first {n} are shown.", { n: number(items.length) })}</p>`}
    <ol class="list">${items.map((change, at) => html`<li class="panel" key=${at}><${Change} base=${base} earlier=${earlier} later=${later} change=${change} /></li>`)}</ol>
  </section>`}<//>`;
}

/** When a version was uploaded, and by whom as far as that is known. */
function uploaded({ version, uploaded_at, uploaded_by }) {
  const values = { n: number(version), when: dateTime(uploaded_at), who: uploaded_by?.username };
  return uploaded_by ? t("Version {n}: uploaded {when} by {who}", values) : t("Version {n}: uploaded {when}", values);
}

/** What a later version says where a passage of an earlier one was: only the places within that passage. */
export function ChangedSince({ base, document, passage }) {
  const found = useResource(async (signal) => {
    const newest = (await api.versions({ kb_id: base, document_id: document.document_id, query: { limit: 1 }, signal })).items[0];
    const { earlier, later, items } = await load(base, document.document_id, newest.document_id, signal);
    return { earlier, later, items: items.filter(({ earlier: part }) => part && part.char_start < passage.char_end && part.char_end > passage.char_start) };
  }, [document.document_id, passage.char_start]);
  // The notice itself stays if the versions can't be compared, such as while the newest is being read.
  if (!found.data) return null;
  const { earlier, later, items } = found.data;
  if (!items.length) return html`<p class="muted">${t("What is cited here is the same in the newest version.")}</p>`;
  return html`<${Notice} title=${t("What the newest version says")}>${items.map((change, at) => html`<${Change} key=${at} base=${base} earlier=${earlier} later=${later} change=${change} />`)}<//>`;
}

function Change({ base, earlier, later, change }) {
  const [before, after] = marked(change.earlier?.text ?? "", change.later?.text ?? "");
  return html`<div class="change">
    ${change.earlier && html`<${Side} base=${base} version=${earlier} part=${change.earlier} name=${t("Before")}>${pieces(before, "del")}<//>`}
    ${change.later && html`<${Side} base=${base} version=${later} part=${change.later} name=${t("After")}>${pieces(after, "ins")}<//>`}
  </div>`;
}

function Side({ base, version, part, name, children }) {
  const place = new URLSearchParams({ from: part.char_start, to: part.char_end, ...(part.page ? { page: part.page } : {}) });
  return html`<div><${Link} class="faint" to=${`/documents/${base}/${version.document_id}?${place}`}>${name}<//><p class="passage-text">${children}</p></div>`;
}

const pieces = ([start, middle, end], tag) => html`${start}${middle && html`<${tag}>${middle}<//>`}${end}`;

/** Two sentences beside each other, with what differs marked. */
export const apart = (one, other) => marked(one, other).map((text) => pieces(text, "mark"));

/** Two texts, each as what both begin with, what is its own, and what both end with. */
function marked(before, after) {
  const [one, other] = [before.match(WORDS) ?? [], after.match(WORDS) ?? []];
  const most = Math.min(one.length, other.length);
  let start = 0;
  while (start < most && one[start] === other[start]) start += 1;
  let end = 0;
  while (end < most - start && one.at(-1 - end) === other.at(-1 - end)) end += 1;
  return [one, other].map((words) => [words.slice(0, start), words.slice(start, words.length - end), words.slice(words.length - end)].map((some) => some.join("")));
}
