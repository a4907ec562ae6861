/** What every page is written with: htm for markup, Preact's hooks, signals for what pages share. */

import { h, render, Fragment, createContext } from "../vendor/preact.js";
import htm from "../vendor/htm.js";

export { h, render, Fragment, createContext };
export { useCallback, useContext, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "../vendor/hooks.js";
export { batch, computed, effect, signal, useComputed, useSignal, useSignalEffect } from "../vendor/signals.js";

export const html = htm.bind(h);

/** Class names from strings and `{name: condition}`. */
export function classes(...parts) {
  return parts
    .flatMap((part) => (typeof part === "object" && part ? Object.keys(part).filter((key) => part[key]) : part || []))
    .join(" ");
}
