/** What every page uses: htm for markup, Preact's hooks, signals for shared state. */

import { h, render, Fragment, createContext } from "../vendor/preact.js";
import htm from "../vendor/htm.js";

export { h, render, Fragment, createContext };
export { useCallback, useContext, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "../vendor/hooks.js";
export { batch, computed, effect, signal, useComputed, useSignal, useSignalEffect } from "../vendor/signals.js";

export const html = htm.bind(h);

/** A component that is only drawn again if one of its values changes: for the rows of long lists. */
export function memo(Component) {
  function isStale(next) {
    return Object.keys({ ...next, ...this.props }).some((name) => next[name] !== this.props[name]);
  }
  return function Kept(props) {
    this.shouldComponentUpdate = isStale;
    return h(Component, props);
  };
}

/** Class names from strings and `{name: condition}`. */
export function classes(...parts) {
  return parts
    .flatMap((part) => (typeof part === "object" && part ? Object.keys(part).filter((key) => part[key]) : part || []))
    .join(" ");
}
