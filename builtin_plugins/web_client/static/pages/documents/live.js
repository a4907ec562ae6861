/** The documents of a knowledge base as they are now: loaded once, then only what is being read is asked for. */

import { useCallback, useEffect, useRef } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { usePolling, useResource } from "../../lib/resource.js";
import { onSent } from "./uploads.js";

const PAUSE = 1500;
const AT_ONCE = 20;
const KIND = "rag.ingest_document";

/** {documents, progress, reload, put, drop, error}: `progress` has the running job of each document that has one. */
export function useDocuments(base) {
  const list = useResource((signal) => everything(api.documents, { kb_id: base, signal }), [base]);
  const jobs = useRef(new Map());
  const latest = useRef(list);
  latest.current = list;
  const put = useCallback((documents) => {
    const fresh = new Map(documents.map((item) => [item.document_id, item]));
    const known = latest.current.data ?? [];
    const kept = known.map((item) => fresh.get(item.document_id) ?? item);
    const ids = new Set(known.map((item) => item.document_id));
    latest.current.set([...documents.filter((item) => !ids.has(item.document_id)), ...kept]);
  }, []);
  const drop = useCallback((id) => latest.current.set(latest.current.data.filter((item) => item.document_id !== id)), []);
  useEffect(() => onSent((of, document) => of === base && put([document])), [base]);
  const busy = (list.data ?? []).some((item) => item.status === "processing");
  const look = async () => {
    const query = { status: "processing", limit: 500 };
    const [going, running] = await Promise.all([
      api.documents({ kb_id: base, query }),
      api.jobs({ query: { kind: KIND, limit: 500 } }),
    ]);
    const still = new Set(going.items.map((item) => item.document_id));
    jobs.current = new Map(running.items.filter((job) => still.has(job.subject)).map((job) => [job.subject, job]));
    const over = (latest.current.data ?? []).filter((item) => item.status === "processing" && !still.has(item.document_id));
    const results = await Promise.allSettled(over.slice(0, AT_ONCE).map((item) => api.document({ kb_id: base, document_id: item.document_id })));
    put([...going.items, ...results.filter((result) => result.value).map((result) => result.value)]);
    for (const [index, result] of results.entries()) if (result.reason?.status === 404) drop(over[index].document_id);
  };
  usePolling(() => look().catch(() => {}), PAUSE, busy);
  return { ...list, documents: list.data, jobs: jobs.current, put, drop };
}
