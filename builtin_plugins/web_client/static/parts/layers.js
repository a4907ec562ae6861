/** Layers over the page: dialogs, menus, short messages. */

import { html, signal, useEffect, useId, useLayoutEffect, useRef, useState } from "../lib/html.js";
import { useAction } from "../lib/resource.js";
import { t } from "../lib/words.js";
import { Button } from "./basics.js";
import { Leaving, isChanged } from "./changes.js";
import { Form } from "./forms.js";
import { Icon } from "./icons.js";

const EDGE = 8;

/**
 * The browser's own dialog: it keeps the focus, and Escape and Back close it, after a question if something that was
 * entered would be lost.
 */
export function Dialog({ title, onClose, children, wide, closable = true }) {
  const box = useRef(null);
  const id = useId();
  const [discard, setDiscard] = useState(null);
  // Before the next key press, which should already go into it.
  useLayoutEffect(() => {
    const dialog = box.current;
    const before = document.activeElement;
    dialog.showModal();
    return () => {
      dialog.onclose = null;
      dialog.close();
      before?.focus?.();
      requestAnimationFrame(focusSomething);
    };
  }, []);
  const leave = (fn) => {
    if (discard) return; // one Escape may reach both dialogs
    if (isChanged(box.current)) setDiscard(() => fn);
    else fn();
  };
  const close = () => closable && leave(onClose);
  const cancel = (event) => {
    if (!event.cancelable) return;
    event.preventDefault();
    close();
  };
  // When Escape is pressed twice in a row, browsers close a dialog even if the page prevents it.
  useLayoutEffect(() => {
    box.current.onclose = () => {
      box.current.showModal();
      close();
    };
  });
  useBack(box, close);
  const outside = (event) => {
    if (event.target !== box.current) return;
    event.preventDefault(); // which would take the focus away from the question
    close();
  };
  return html`<dialog ref=${box} class=${wide ? "dialog wide" : "dialog"} aria-labelledby=${id} onCancel=${cancel} onMouseDown=${outside}>
    <${Leaving.Provider} value=${leave}><div class="dialog-inside">
      <header>
        <h2 id=${id}>${title}</h2>
        ${closable && html`<${Button} kind="quiet" small icon="close" aria-label=${t("Close")} onClick=${close} />`}
      </header>
      ${children}
    </div><//>
    ${discard && html`<${Discard} onDiscard=${discard} onClose=${() => setDiscard(null)} />`}
  </dialog>`;
}

/** What opened a dialog may be gone with what was done there: then the page has the focus. */
function focusSomething() {
  if (document.activeElement === document.body) document.getElementById("main")?.focus({ preventScroll: true });
}

export function Discard({ onDiscard, onClose }) {
  const go = (event) => {
    event.target.closest("dialog").onclose = null;
    event.target.closest("dialog").close(); // the one below gives the focus back
    onClose();
    onDiscard();
  };
  return html`<${Dialog} title=${t("Discard what you entered?")} onClose=${onClose}>
    <p>${t("It has not been saved.")}</p>
    <div class="form-actions"><${Button} onClick=${onClose} autofocus>${t("Keep it")}<//><${Button} kind="danger" onClick=${go}>${t("Discard")}<//></div>
  <//>`;
}

/**
 * Call `fn` when somebody asks to close what is on top: with Escape, or on a phone with Back, which would otherwise leave
 * the page. The browser's dialogs do so themselves; in browsers without such requests, the buttons remain.
 */
export function useCloseRequest(fn, active = true) {
  const latest = useRef(fn);
  latest.current = fn;
  useEffect(() => {
    if (!active || !("CloseWatcher" in window)) return undefined;
    const watcher = new window.CloseWatcher();
    watcher.onclose = () => latest.current();
    return () => watcher.destroy();
  }, [active]);
}

/**
 * Call `fn` instead of leaving the page when somebody presses Back while this dialog is on top. A browser lets a page do so
 * once for each click or key press, and only where Back leads to something that was shown without reloading the page.
 * Browsers without such events leave the page.
 */
export function useBack(box, fn) {
  const latest = useRef(fn);
  latest.current = fn;
  useEffect(() => {
    if (!("navigation" in window)) return undefined;
    const { navigation } = window;
    const leave = (event) => {
      const isBack = event.navigationType === "traverse" && event.destination.index < navigation.currentEntry.index;
      if (!isBack || !event.cancelable || [...document.querySelectorAll("dialog[open]")].at(-1) !== box.current) return;
      event.preventDefault();
      latest.current();
    };
    navigation.addEventListener("navigate", leave);
    return () => navigation.removeEventListener("navigate", leave);
  }, []);
}

/** Asks before something that can't be undone. `onConfirm` may fail: then the dialog shows why. */
export function Confirm({ title, children, confirm, disabled, onConfirm, onClose }) {
  const action = useAction(async () => {
    await onConfirm();
    onClose();
  });
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <${Form} action=${action} submit=${confirm} submitKind="danger" disabled=${disabled} onCancel=${onClose}><div class="prose">${children}</div><//>
  <//>`;
}

/** A button with a list of commands: [{title, icon, onSelect, danger}]. Arrow keys move, Escape closes. */
export function Menu({ label, icon = "more", items, trigger, kind = "quiet", small = true, up }) {
  const [open, setOpen] = useState(false);
  const root = useRef(null);
  useCloseRequest(() => setOpen(false), open);
  useEffect(() => {
    if (!open) return undefined;
    const away = (event) => root.current?.contains(event.target) || setOpen(false);
    document.addEventListener("pointerdown", away);
    root.current.querySelector("[role=menuitem]")?.focus();
    keepInside(root.current.querySelector("[role=menu]"));
    return () => document.removeEventListener("pointerdown", away);
  }, [open]);
  const keys = (event) => {
    const found = [...root.current.querySelectorAll("[role=menuitem]")];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      found.at((found.indexOf(document.activeElement) + step) % found.length)?.focus();
    }
    if (event.key === "Escape" || event.key === "Tab") {
      setOpen(false);
      if (event.key === "Escape") root.current.querySelector("button").focus();
    }
  };
  const choose = (item) => {
    setOpen(false);
    root.current.querySelector("button").focus();
    item.onSelect();
  };
  const shown = (items || []).filter(Boolean);
  if (!shown.length) return null;
  return html`<div class="menu" ref=${root} onKeyDown=${open ? keys : undefined}>
    ${
      trigger
        ? html`<button type="button" class="menu-trigger" aria-haspopup="menu" aria-expanded=${open} onClick=${() => setOpen(!open)}>${trigger}</button>`
        : html`<${Button} kind=${kind} small=${small} icon=${icon} aria-label=${label} aria-haspopup="menu" aria-expanded=${open} onClick=${() => setOpen(!open)} />`
    }
    ${
      open &&
      html`<div class=${up ? "menu-list up" : "menu-list"} role="menu" aria-label=${label}>
        ${shown.map(
          (item) => html`<button type="button" role="menuitem" tabindex="-1" key=${item.title} class=${item.danger ? "danger" : ""} onClick=${() => choose(item)}>
            ${item.icon && html`<${Icon} name=${item.icon} size=${16} />`}<span>${item.title}</span>
          </button>`,
        )}
      </div>`
    }
  </div>`;
}

/** Move a list that would begin to the left of the screen. */
function keepInside(list) {
  const { left } = list.getBoundingClientRect();
  if (left < EDGE) list.style.translate = `${EDGE - left}px 0`;
}

const messages = signal([]);
let count = 0;

const drop = (message) => {
  messages.value = messages.value.filter((other) => other !== message);
};

/**
 * Show a message for a few seconds; after it stands what the API `said` in English, if that says more. An `action`,
 * {title, run}, has a button.
 */
export function say(text, tone = "good", said = "", action = null) {
  count += 1;
  const message = { id: count, text, tone, said, action };
  messages.value = [...messages.value.slice(-2), message];
  setTimeout(drop, tone === "bad" || action ? 9000 : 4000, message);
}

/** Show for a few seconds what went wrong. */
export const sayError = ({ message, said }) => say(message, "bad", said);

export function Messages() {
  return html`<div class="messages" role="status" aria-live="polite">
    ${messages.value.map(
      (message) => html`<div key=${message.id} class=${`message message-${message.tone}`}>
        <${Icon} name=${message.tone === "bad" ? "alert" : "check"} />
        <div>${message.text}${message.said && html` <span lang="en">${message.said}</span>`}</div>
        ${message.action && html`<${Button} small onClick=${() => (drop(message), message.action.run())}>${message.action.title}<//>`}
      </div>`,
    )}
  </div>`;
}
