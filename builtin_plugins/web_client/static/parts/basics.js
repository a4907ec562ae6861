/** Small things that every page shows: buttons, badges, notices, empty states. */

import { classes, html, useEffect, useRef, useState } from "../lib/html.js";
import { copyText } from "../lib/plain-http.js";
import { Link } from "../lib/router.js";
import { t } from "../lib/words.js";
import { Icon } from "./icons.js";

/** A button; `to` makes it a link, `busy` shows that it works. */
export function Button({ kind = "plain", icon, busy, small, to, children, class: extra, disabled, ...rest }) {
  const look = classes("button", `button-${kind}`, { small, "only-icon": !children }, extra);
  const inside = html`${busy ? html`<${Spinner} />` : icon && html`<${Icon} name=${icon} size=${small ? 16 : 18} />`}
    ${children && html`<span>${children}</span>`}`;
  if (to) return html`<${Link} to=${to} class=${look} ...${rest}>${inside}<//>`;
  return html`<button type="button" class=${look} disabled=${disabled || busy} aria-busy=${busy ? "true" : undefined} ...${rest}>
    ${inside}
  </button>`;
}

export const Spinner = () => html`<span class="spinner" aria-hidden="true"></span>`;

export const Badge = ({ tone = "neutral", children }) => html`<span class=${`badge badge-${tone}`}>${children}</span>`;

/** Something to know; an error says what happened and what to do. */
export function Notice({ tone = "info", title, children, onRetry, action }) {
  const icon = { info: "info", bad: "alert", warn: "alert", good: "check" }[tone];
  return html`<div class=${`notice notice-${tone}`} role=${tone === "bad" ? "alert" : "status"}>
    <${Icon} name=${icon} />
    <div class="notice-text">${title && html`<strong>${title}</strong>`}${children && html`<div>${children}</div>`}</div>
    ${onRetry && html`<${Button} small icon="retry" onClick=${onRetry}>${t("Try again")}<//>`}${action}
  </div>`;
}

/** What went wrong, with the id by which an operator finds it in the log; `back` is the way on from what no longer exists. */
export function Failure({ error, onRetry, title, back }) {
  if (!error) return null;
  // What doesn't exist won't exist at the next try.
  const isGone = error.status === 404;
  return html`<${Notice} tone="bad" title=${title ?? error.message} onRetry=${isGone ? undefined : onRetry} action=${isGone && back && html`<${Button} small to=${back.to}>${back.title}<//>`}>
    ${title && html`<span>${error.message}</span>`}
    ${error.said && html`<span class="block" lang="en">${error.said}</span>`}
    ${error.status >= 500 && error.requestId && html` <span class="faint">${t("Request {id}", { id: error.requestId })}</span>`}
  <//>`;
}

/** An empty list, and how to begin. */
export function Empty({ icon, title, children, action }) {
  return html`<div class="empty">
    <span class="empty-icon"><${Icon} name=${icon} size=${26} /></span>
    <h2>${title}</h2>
    ${children && html`<p>${children}</p>`}${action && html`<div class="row center">${action}</div>`}
  </div>`;
}

/** Gray lines in place of text that is being loaded. */
export function Skeleton({ lines = 4 }) {
  const widths = ["92%", "78%", "85%", "64%", "88%", "70%"];
  return html`<div class="skeleton" role="status" aria-label=${t("Loading")}>
    ${Array.from({ length: lines }, (_, index) => html`<span style=${{ width: widths[index % widths.length] }}></span>`)}
  </div>`;
}

/** A page that can't be shown: nothing is there, or it could not be loaded. */
export const Unshown = ({ error, onRetry, back }) => html`<${Head} title=${error.status === 404 ? t("There is nothing at this address") : t("This page can’t be shown")} />
  <${Failure} error=${error} onRetry=${onRetry} back=${back} />`;

/** The state of a resource: gray lines, an error, or the page that `children` makes of it. A whole page names the way `back`. */
export function Loaded({ of, lines, back, children }) {
  if (of.data !== null) return html`<${Failure} error=${of.error} onRetry=${of.reload} />${children(of.data)}`;
  if (of.error) return html`<${back ? Unshown : Failure} error=${of.error} onRetry=${of.reload} back=${back} />`;
  return html`<${Skeleton} lines=${lines} />`;
}

/** The head of a page. */
export function Head({ title, about, back, children }) {
  return html`<header class="head">
    <div class="head-text">
      ${back && html`<${Link} class="back" to=${back.to}><${Icon} name="back" size=${16} />${back.title}<//>`}
      <h1>${title}</h1>
      ${about && html`<p>${about}</p>`}
    </div>
    <div class="head-actions">${children}</div>
  </header>`;
}

/** Views of one page, each with its own address. Where they don’t fit, the current one is in sight. */
export function Tabs({ label, tabs, current }) {
  const box = useRef(null);
  useEffect(() => {
    const list = box.current;
    const here = list.querySelector("[aria-current]");
    if (!here) return undefined;
    // It is also called once at the beginning.
    const sizes = new ResizeObserver(() => {
      list.scrollLeft = here.offsetLeft - (list.clientWidth - here.offsetWidth) / 2;
    });
    sizes.observe(list);
    return () => sizes.disconnect();
  }, [current]);
  return html`<nav class="tabs" aria-label=${label} ref=${box}>
    ${tabs.map(
      (tab) => html`<${Link} to=${tab.to} aria-current=${tab.to === current ? "page" : undefined}>
        ${tab.title}${tab.count !== undefined && html` <span class="count">${tab.count}</span>`}
      <//>`,
    )}
  </nav>`;
}

export function Meter({ value, max, label, text, role = "progressbar" }) {
  const share = max ? Math.min(1, value / max) : 0;
  return html`<span class="meter" role=${role} aria-label=${label} aria-valuetext=${text} aria-valuemin="0" aria-valuemax=${max ?? 0} aria-valuenow=${value}>
    <span style=${{ width: `${share * 100}%` }} class=${classes({ unknown: !max })}></span>
  </span>`;
}

/** Text with a button that copies it, or selects it where the browser doesn’t let a page copy. */
export function Copyable({ text, label, block }) {
  const [done, setDone] = useState(false);
  const box = useRef(null);
  const copy = async () => {
    if (!(await copyText(text))) return getSelection().selectAllChildren(box.current);
    setDone(true);
    return setTimeout(() => setDone(false), 1600);
  };
  return html`<div class=${classes("copyable", { block })}>
    <pre ref=${box} tabindex="0" aria-label=${label}><code>${text}</code></pre>
    <${Button} small kind="quiet" icon=${done ? "check" : "copy"} aria-label=${t("Copy")} onClick=${copy} />
  </div>`;
}
