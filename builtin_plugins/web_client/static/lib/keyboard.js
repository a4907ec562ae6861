/** Shortcuts: "mod+k" with Ctrl or ⌘, "g d" as two keys in a row. Single keys are ignored while somebody types. */

import { useEffect, useRef } from "./html.js";

const PATIENCE = 900; // ms between the two keys of a sequence

export function useShortcuts(bindings) {
  const latest = useRef(bindings);
  latest.current = bindings;
  useEffect(() => {
    let first = "";
    let timer = 0;
    const take = (event) => {
      const mod = event.ctrlKey || event.metaKey;
      const name = mod ? `mod+${event.key.toLowerCase()}` : event.key;
      if (!mod && (event.altKey || isTyping(event.target))) return;
      if (document.querySelector("dialog[open]")) return;
      const run = latest.current[name] ?? (first && latest.current[`${first} ${name}`]);
      clearTimeout(timer);
      if (run) {
        event.preventDefault();
        first = "";
        run();
      } else if (!mod) {
        first = name;
        timer = setTimeout(() => {
          first = "";
        }, PATIENCE);
      }
    };
    document.addEventListener("keydown", take);
    return () => document.removeEventListener("keydown", take);
  }, []);
}

/** Whether a key is an input method's: Enter takes its suggestion. Safari says so of the last one only by its old code. */
export const isComposing = (event) => event.isComposing || event.keyCode === 229;

const isTyping = (target) => target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
