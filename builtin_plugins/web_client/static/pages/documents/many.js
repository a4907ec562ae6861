/** Many documents at once: choosing them, deleting them, reading those again that failed. */

import { html, useCallback, useEffect, useMemo, useRef, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { number, plural, t } from "../../lib/words.js";
import { Button, Failure, Meter } from "../../parts/basics.js";
import { Dialog, say } from "../../parts/layers.js";
import { alike, named } from "./alike.js";
import { readAgain } from "./row.js";
import { useTrashDays } from "./trash.js";

const AT_ONCE = 4;

/**
 * {ids, chosen, choose, all}: `chosen` are the chosen ones of the `shown` documents, as nobody means what a filter hides.
 * `choose` takes an id, whether it is chosen, and whether everything from the last one on is meant.
 */
export function useSelection(shown) {
  const [ids, setIds] = useState(new Set());
  const last = useRef(null);
  const latest = useRef(shown);
  latest.current = shown;
  const choose = useCallback((id, on, isRange) => {
    const places = [last.current, id].map((one) => latest.current.findIndex((item) => item.document_id === one));
    const [from, to] = isRange && places[0] >= 0 ? places.sort((one, other) => one - other) : [places[1], places[1]];
    last.current = id;
    setIds((was) => changed(was, latest.current.slice(from, to + 1), on));
  }, []);
  const all = (on) => setIds(on ? changed(new Set(), shown, true) : new Set());
  const chosen = useMemo(() => shown.filter((item) => ids.has(item.document_id)), [shown, ids]);
  return { ids, chosen, choose, all };
}

function changed(was, documents, on) {
  const ids = new Set(was);
  for (const { document_id: id } of documents) ids[on ? "add" : "delete"](id);
  return ids;
}

/** What can be done with the chosen documents. */
export function Selection({ base, selection, shown, live }) {
  const { chosen, all } = selection;
  const days = useTrashDays(base);
  const [work, setWork] = useState(null);
  const box = useRef(null);
  const failed = chosen.filter(hasFailed);
  useEffect(() => {
    if (box.current) box.current.indeterminate = chosen.length > 0 && chosen.length < shown.length;
  });
  const close = () => {
    setWork(null);
    // The buttons are gone if nothing is chosen any more, and so is all of this after the last document.
    requestAnimationFrame(() => document.activeElement === document.body && (box.current ?? document.getElementById("main")).focus());
  };
  if (!shown.length && !work) return null;
  return html`<div class="selection" role="group" aria-label=${t("Selected documents")}>
    <label class="option"><input type="checkbox" ref=${box} checked=${chosen.length > 0 && chosen.length === shown.length} onChange=${({ target }) => all(target.checked)} /><span>${t("Select all")}</span></label>
    <span class="muted" role="status">${chosen.length > 0 && plural(chosen.length, "One document is selected.", "{n} documents are selected.")}</span>
    ${failed.length > 0 && html`<${Button} small icon="retry" onClick=${() => setWork(rereading(base, failed, live))}>${plural(failed.length, "Try the failed one again", "Try {n} failed ones again")}<//>`}
    ${chosen.length > 0 && html`<${Button} small icon="trash" disabled=${days === null} onClick=${() => setWork(deletion(base, chosen, live, days))}>${t("Delete")}<//>`}
    ${work && html`<${Work} ...${work} onClose=${close} />`}
  </div>`;
}

const hasFailed = (document) => document.status === "failed";

/** The work of deleting: each step is of one document. What somebody else has deleted meanwhile is deleted. */
function deletion(base, documents, live, days) {
  const unlessGone = (error) => {
    if (error.status !== 404) throw error;
  };
  const remove = (id) => api.deleteDocument({ kb_id: base, document_id: id, query: { trash: days > 0 } }).catch(unlessGone).then(() => live.drop(id));
  return {
    title: plural(documents.length, "Delete one document?", "Delete {n} documents?"),
    about: days > 0
      ? `${t("Answers no longer use them.")} ${plural(days, "You can take them back from the trash for a day.", "You can take them back from the trash for {n} days.")}`
      : t("Their text, their passages and the original files are removed for good. Answers no longer use them."),
    confirm: t("Delete"),
    kind: "danger",
    done: plural(documents.length, "One document is deleted.", "{n} documents are deleted."),
    names: documents.map(({ filename }) => filename),
    steps: documents.map(({ document_id: id, filename }) => ({ id, name: filename, count: 1, run: () => remove(id) })),
  };
}

/** The work of reading again: if it is for all that failed, the server needs one request instead of their files. */
function rereading(base, documents, live) {
  const isEvery = live.missing === 0 && documents.length === live.documents.filter(hasFailed).length;
  const again = (item) => readAgain(base, item).then((found) => live.put([found]));
  return {
    title: plural(documents.length, "Read one document again?", "Read {n} documents again?"),
    about: t("They were not read the first time. While they are read, you can go on working."),
    confirm: t("Try again"),
    kind: "primary",
    done: plural(documents.length, "One document is being read again.", "{n} documents are being read again."),
    names: documents.map(({ filename }) => filename),
    steps: isEvery
      ? [{ id: "all", name: t("All of them"), count: documents.length, run: () => api.readFailedAgain({ kb_id: base }).then(live.reload) }]
      : documents.map((item) => ({ id: item.document_id, name: item.filename, count: 1, run: () => again(item) })),
  };
}

/** How many documents some steps are for. */
const countOf = (steps) => steps.reduce((sum, { count }) => sum + count, 0);

/** Asks once, then takes the steps, a few at a time; says afterwards which of them failed, and why. */
function Work({ title, about, confirm, kind, done, names, steps, onClose }) {
  const [left, setLeft] = useState(steps);
  const [taken, setTaken] = useState(null); // of how many documents, while it goes on
  const [failures, setFailures] = useState([]);
  const stopped = useRef(false);
  const buttons = useRef(null);
  useEffect(() => () => {
    stopped.current = true;
  }, []);
  useEffect(() => {
    buttons.current?.querySelector("button")?.focus();
  }, [taken === null]);
  const run = async () => {
    const waiting = [...left];
    const failed = [];
    stopped.current = false;
    setTaken(0);
    const work = async () => {
      while (waiting.length && !stopped.current) {
        const step = waiting.shift();
        await step.run().catch((error) => failed.push({ ...step, error }));
        setTaken((was) => was + step.count);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    if (failed.length || waiting.length) {
      setFailures(failed);
      setLeft([...failed, ...waiting]);
      return setTaken(null);
    }
    onClose();
    return say(done);
  };
  const isPart = left !== steps;
  return html`<${Dialog} title=${title} onClose=${onClose} closable=${taken === null}>
    ${taken === null && !isPart && html`<p>${about}</p><p class="faint">${named(names)}</p>`}
    ${taken === null && isPart && html`<p>${t("{n} of {total} are done.", { n: number(countOf(steps) - countOf(left)), total: number(countOf(steps)) })}</p>`}
    ${taken === null && alike(failures).map((group) => html`<${Failure} key=${group[0].id} title=${named(group.map(({ name }) => name))} error=${group[0].error} />`)}
    ${taken !== null && html`<p>${t("{n} of {total} are done.", { n: number(taken), total: number(countOf(left)) })}</p><${Meter} value=${taken} max=${countOf(left)} label=${title} />`}
    <div class="form-actions" ref=${buttons}>
      ${
        taken === null
          ? html`<${Button} onClick=${onClose}>${isPart ? t("Close") : t("Cancel")}<//><${Button} kind=${kind} onClick=${run}>${isPart ? t("Try again") : confirm}<//>`
          : html`<${Button} onClick=${() => { stopped.current = true; }}>${t("Stop")}<//>`
      }
    </div>
  <//>`;
}
