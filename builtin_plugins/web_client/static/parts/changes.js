/** Which forms hold something that somebody entered and has not sent. */

import { createContext, useLayoutEffect, useRef } from "../lib/html.js";

const forms = new Map();
/** Not worth a question: searches and secrets. */
const FLEETING = new Set(["search", "password", "submit", "button"]);

/** Call the function of whoever wants to leave a form, after a question if something would be lost. */
export const Leaving = createContext((leave) => leave());

const heldBy = (field) => (["checkbox", "radio"].includes(field.type) ? field.checked : field.value);

/** The `ref` of a form whose fields are watched, and which is not left silently unless it is `busy` sending them. */
export function useChanges(busy) {
  const box = useRef(null);
  const sending = useRef(busy);
  sending.current = busy;
  useLayoutEffect(() => {
    const form = box.current;
    const before = new Map();
    const entered = new Set();
    // What a page fills in later, such as the options of a list, is nobody's change.
    const look = () => {
      for (const field of form.elements) if (!entered.has(field)) before.set(field, heldBy(field));
    };
    const enter = ({ target }) => FLEETING.has(target.type) || entered.add(target);
    const isChanged = () => !sending.current && [...entered].some((field) => field.isConnected && heldBy(field) !== before.get(field));
    look();
    for (const kind of ["focusin", "pointerdown", "keydown"]) form.addEventListener(kind, look, { capture: true });
    form.addEventListener("input", enter);
    forms.set(form, isChanged);
    return () => forms.delete(form);
  }, []);
  return box;
}

/** Whether something in this dialog would be lost. */
export const isChanged = (dialog) => [...forms].some(([form, changed]) => dialog.contains(form) && changed());

// The browser asks in its own words before it reloads or closes the page.
addEventListener("beforeunload", (event) => {
  if ([...document.querySelectorAll("dialog[open]")].some(isChanged)) event.preventDefault();
});
