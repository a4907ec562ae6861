/** What a view loads: loading, loaded, failed, reloaded. */

import { useCallback, useEffect, useRef, useState } from "./html.js";
import { unreachable } from "./http.js";

const PATIENCE = 30_000; // ms: an answer over a connection that was cut may never come

/**
 * The result of `load(signal)`, loaded again when `keys` change: {data, error, loading, reload, set}.
 *
 * `set` takes the new data, or a function of the old. The old data stays while it is loaded again; an outdated response
 * is dropped.
 */
export function useResource(load, keys = []) {
  const [state, setState] = useState({ data: null, error: null, loading: true });
  const stop = useRef(null);
  const reload = useCallback(async () => {
    stop.current?.abort();
    const mine = new AbortController();
    stop.current = mine;
    setState((was) => ({ ...was, loading: true }));
    try {
      const data = await load(mine.signal);
      if (!mine.signal.aborted) setState({ data, error: null, loading: false });
    } catch (error) {
      if (!mine.signal.aborted) setState((was) => ({ data: was.data, error, loading: false }));
    }
  }, keys);
  useEffect(() => {
    setState((was) => ({ ...was, data: null, error: null }));
    reload();
    return () => stop.current?.abort();
  }, keys);
  const set = useCallback((data) => {
    setState((was) => ({ data: typeof data === "function" ? data(was.data) : data, error: null, loading: false }));
  }, []);
  return { ...state, reload, set };
}

/**
 * Call `fn` every `milliseconds` while `active`, but not while the page is hidden or the server away, nor before the last
 * call has ended: requests to a slow server would pile up, or each would abort the one before.
 */
export function usePolling(fn, milliseconds, active = true) {
  const latest = useRef(fn);
  latest.current = fn;
  useEffect(() => {
    if (!active) return undefined;
    let begun = -Infinity; // the last call that hasn't ended
    const poll = async () => {
      const now = performance.now();
      if (document.hidden || unreachable.value || now - begun < PATIENCE) return;
      begun = now;
      try {
        await latest.current();
      } finally {
        if (begun === now) begun = -Infinity;
      }
    };
    const timer = setInterval(poll, milliseconds);
    return () => clearInterval(timer);
  }, [milliseconds, active]);
}

/** Call `fn` when somebody comes back to this window, while `active`. */
export function useReturning(fn, active = true) {
  const latest = useRef(fn);
  latest.current = fn;
  useEffect(() => {
    if (!active) return undefined;
    const look = () => latest.current();
    addEventListener("focus", look);
    return () => removeEventListener("focus", look);
  }, [active]);
}

/** An action in progress: {run, busy, error, clear}. `run` returns whether it worked. */
export function useAction(fn) {
  const [state, setState] = useState({ busy: false, error: null });
  const run = async (...args) => {
    setState({ busy: true, error: null });
    try {
      await fn(...args);
      setState({ busy: false, error: null });
      return true;
    } catch (error) {
      setState({ busy: false, error: error.name === "AbortError" ? null : error });
      return false;
    }
  };
  return { ...state, run, clear: () => setState({ busy: false, error: null }) };
}
