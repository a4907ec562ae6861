/** Which forms hold something that somebody entered and has not sent. */

import { createContext, useLayoutEffect, useRef } from "../lib/html.js";

const forms = new Map();
/** Not worth a question: searches and secrets. */
const FLEETING = new Set(["search", "password", "submit", "button"]);

/** Call the function of whoever wants to leave a form, after a question if something would be lost. */
export const Leaving = createContext((leave) => leave());

const heldBy = (field) => (["checkbox", "radio"].includes(field.type) ? field.checked : field.value);

/**
 * The `ref` of a form whose fields are watched, and which is not left silently unless it is `busy` sending them. Once it
 * was sent and nothing `failed`, its fields hold what is stored, but for what was entered meanwhile.
 */
export function useChanges(busy, failed) {
  const box = useRef(null);
  const sending = useRef(busy);
  if (sending.current && !busy) forms.get(box.current)?.sent(!failed);
  sending.current = busy;
  useLayoutEffect(() => {
    const form = box.current;
    const before = new Map();
    const entered = new Set();
    const late = new Set(); // entered while the form was being sent
    // What a page fills in later, such as the options of a list, is nobody's change.
    const look = () => {
      for (const field of form.elements) if (!entered.has(field) && !late.has(field)) before.set(field, heldBy(field));
    };
    const enter = ({ target }) => FLEETING.has(target.type) || (sending.current ? late : entered).add(target);
    const isChanged = () => !sending.current && [...entered].some((field) => field.isConnected && heldBy(field) !== before.get(field));
    look();
    for (const kind of ["focusin", "pointerdown", "keydown"]) form.addEventListener(kind, look, { capture: true });
    form.addEventListener("input", enter);
    const forget = () => entered.clear();
    const sent = (isStored) => {
      if (isStored) forget();
      for (const field of late) {
        if (isStored) before.delete(field); // what is stored of it isn't known any more
        entered.add(field);
      }
      late.clear();
    };
    forms.set(form, { isChanged, forget, sent });
    return () => forms.delete(form);
  }, []);
  return box;
}

const formsIn = (box) => [...forms].filter(([form]) => box?.contains(form)).map(([, held]) => held);

/** Whether something in this part of the page would be lost. */
export const isChanged = (box) => formsIn(box).some((form) => form.isChanged());

/** Let go of what was entered in this part of the page. */
export const forgetChanges = (box) => formsIn(box).forEach((form) => form.forget());

// The browser asks in its own words before it reloads or closes the page.
addEventListener("beforeunload", (event) => {
  if ([...document.querySelectorAll("#main, dialog[open]")].some(isChanged)) event.preventDefault();
});
