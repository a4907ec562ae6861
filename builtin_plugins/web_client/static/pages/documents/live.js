/** The current documents of a knowledge base: loaded once, then only those being read are polled. */

import { useCallback, useEffect, useRef, useState } from "../../lib/html.js";
import { api, pagesOf } from "../../lib/api.js";
import { usePolling, useResource } from "../../lib/resource.js";
import { onSent } from "./uploads.js";

const PAUSE = 1500;
const PAGE = 200;
/** Documents asked for one by one each time: with thousands, the account's limit of requests is soon reached. */
const FEW = 3;
const KIND = "rag.ingest_document";

/**
 * {documents, count, missing, jobs, reload, put, drop, error}: `jobs` has the running job of each document that
 * has one.
 *
 * The first page is shown as soon as it is loaded; the others follow. `count` already includes them, and `missing`
 * tells how many are left. If one fails, `reload` continues from there.
 */
export function useDocuments(base) {
  const [missing, setMissing] = useState(0);
  const [stopped, setStopped] = useState(null); // what ended the pages early
  const next = useRef(null); // {offset, signal} of the pages that are not loaded yet
  const sent = useRef([]); // uploads during the request for the list, which may be missing in the response
  const list = useResource(async (signal) => {
    sent.current = [];
    const pages = pagesOf(api.documents, { kb_id: base, signal });
    const { items, total } = (await pages.next()).value;
    next.current = { offset: items.length, signal };
    setMissing(total - items.length);
    follow(pages);
    const listed = new Set(items.map((item) => item.document_id));
    return [...sent.current.filter((item) => !listed.has(item.document_id)), ...items];
  }, [base]);
  const jobs = useRef(new Map());
  const latest = useRef(list);
  latest.current = list;
  const merge = (documents, atEnd) =>
    list.set((known) => {
      const fresh = new Map(documents.map((item) => [item.document_id, item]));
      const kept = (known ?? []).map((item) => {
        const found = fresh.get(item.document_id) ?? item;
        fresh.delete(item.document_id);
        return found;
      });
      return atEnd ? [...kept, ...fresh.values()] : [...fresh.values(), ...kept];
    });
  const follow = async (pages) => {
    const here = next.current;
    setStopped(null);
    try {
      for await (const { items, total } of pages) {
        merge(items, true);
        here.offset += items.length;
        setMissing(Math.max(0, total - here.offset));
      }
      setMissing(0);
    } catch (error) {
      if (error.name !== "AbortError") setStopped(error);
    }
  };
  const goOn = () => {
    const { offset, signal } = next.current;
    return follow(pagesOf(api.documents, { kb_id: base, query: { offset }, signal }));
  };
  const put = useCallback((documents) => merge(documents, false), []);
  const drop = useCallback((id) => {
    if (next.current?.offset) next.current.offset -= 1; // later items move up; duplicates do no harm
    list.set((known) => known.filter((item) => item.document_id !== id));
  }, []);
  const take = (of, document) => {
    if (of !== base) return;
    sent.current.push(document);
    put([document]);
  };
  useEffect(() => onSent(take), [base]);
  const busy = (list.data ?? []).some((item) => item.status === "processing");
  /** What became of these documents: most were uploaded together, so they are in one place of the server's list. */
  const lookUp = async (documents) => {
    const first = documents.map((item) => item.uploaded_at).sort()[0];
    const offset = latest.current.data.filter((item) => item.uploaded_at < first).length;
    const listed = new Map((await api.documents({ kb_id: base, query: { limit: PAGE, offset } })).items.map((item) => [item.document_id, item]));
    const others = documents.filter((item) => !listed.has(item.document_id)).slice(0, FEW);
    const results = await Promise.allSettled(others.map((item) => api.document({ kb_id: base, document_id: item.document_id })));
    const ended = [...documents.map((item) => listed.get(item.document_id)), ...results.map((result) => result.value)].filter(Boolean);
    put(ended);
    // Those that new versions have replaced are in no list any more.
    if (ended.some((item) => item.version > 1)) latest.current.reload();
    for (const [index, result] of results.entries()) if (result.reason?.status === 404) drop(others[index].document_id);
  };
  const look = async () => {
    const query = { status: "processing", limit: 500 };
    const [going, running] = await Promise.all([
      api.documents({ kb_id: base, query }),
      api.jobs({ query: { kind: KIND, limit: 500 } }),
    ]);
    const still = new Set(going.items.map((item) => item.document_id));
    jobs.current = new Map(running.items.filter((job) => still.has(job.subject)).map((job) => [job.subject, job]));
    put(going.items);
    const over = (latest.current.data ?? []).filter((item) => item.status === "processing" && !still.has(item.document_id));
    if (over.length) await lookUp(over);
  };
  const [blind, setBlind] = useState(null); // why the state of documents being read is unknown
  usePolling(() => look().then(() => setBlind(null), setBlind), PAUSE, busy);
  const pages = { missing, error: list.error ?? stopped ?? blind, reload: stopped && !list.error ? goOn : list.reload };
  return { ...list, ...pages, documents: list.data, count: (list.data?.length ?? 0) + missing, jobs: jobs.current, put, drop };
}
