/** The frame around every view of a signed-in person. */

import { html, useEffect, useRef, useState } from "../lib/html.js";
import { useShortcuts } from "../lib/keyboard.js";
import { Link, go, path } from "../lib/router.js";
import { account, interrupted } from "../lib/session.js";
import { LANGUAGES, chooseLanguage, language, nameOfLanguage, t } from "../lib/words.js";
import { signOut } from "../pages/sign-in/sign-out.js";
import { managed, navigation } from "../views.js";
import { Button } from "./basics.js";
import { Icon } from "./icons.js";
import { Menu, useCloseRequest } from "./layers.js";
import { Outage } from "./outage.js";
import { Palette } from "./palette.js";
import { SignInAgain } from "./sign-in-again.js";
import { Staying, leavePage } from "./staying.js";
import { startOver } from "../pages/ask/conversation.js";
import { Recent } from "../pages/ask/recent.js";

export function Frame({ children }) {
  const [open, setOpen] = useState(false);
  const [palette, setPalette] = useState(false);
  const views = navigation();
  useShortcuts({
    "mod+k": () => setPalette(true),
    "?": () => setPalette(true),
    ...Object.fromEntries(views.filter((view) => view.keys).map((view) => [view.keys, () => go(view.path)])),
    "g n": () => {
      startOver();
      go("/");
    },
  });
  const arrived = usePlace(path.value);
  useEffect(() => setOpen(false), [path.value]);
  useCloseRequest(() => setOpen(false), open);
  const leave = (event) => event.target.closest("a") && setOpen(false); // also to the current page
  return html`<div class="frame">
    <a class="skip" href="#main" onClick=${skip}>${t("Skip to the content")}</a>
    <header class="topbar">
      <${Button} kind="quiet" icon="menu" aria-label=${t("Navigation")} aria-expanded=${open} onClick=${() => setOpen(!open)} />
      <${Link} to="/" class="brand"><${Brand} /><//>
      <${Button} kind="quiet" icon="search" aria-label=${t("Find anything")} onClick=${() => setPalette(true)} />
    </header>
    ${open && html`<div class="shade" onClick=${() => setOpen(false)}></div>`}
    <aside class=${open ? "sidebar open" : "sidebar"} onClick=${leave}>
      <${Link} to="/" class="brand"><${Brand} /><//>
      <button type="button" class="find" onClick=${() => setPalette(true)}>
        <${Icon} name="search" size=${16} /><span>${t("Find anything")}</span><kbd>${modifier}K</kbd>
      </button>
      <nav aria-label=${t("Main")}>${views.filter((view) => view.isFirst).map((view) => html`<${Place} key=${view.path} view=${view} />`)}<${Managed} /></nav>
      <${Recent} />
      <div class="sidebar-end"><${AccountMenu} /></div>
    </aside>
    <p class="hidden" role="status">${arrived}</p>
    <main id="main" tabindex="-1">${children}</main>
    <${Outage} />
    <${Staying} />
    ${palette && html`<${Palette} onClose=${() => setPalette(false)} />`}
    ${interrupted.value && html`<${SignInAgain} />`}
  </div>`;
}

/** Announce a new view. If the link to it is gone, its content gets the focus. */
function usePlace(here) {
  const [title, setTitle] = useState("");
  const first = useRef(here);
  useEffect(() => {
    if (here === first.current) return;
    first.current = null;
    setTitle(document.title);
    if (document.activeElement === document.body) document.getElementById("main").focus({ preventScroll: true });
  }, [here]);
  return title;
}

const modifier = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘" : "Ctrl ";

function skip(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

export const Brand = () => html`<span class="mark" aria-hidden="true"><${Icon} name="menu" size=${16} /></span><span>Platform</span>`;

const KEPT = "platform.manage";

/** What only some do: shown when it is opened, and while it has the current view. */
function Managed() {
  const views = managed();
  const [open, setOpen] = useState(localStorage.getItem(KEPT) === "open");
  const isHere = views.some(isCurrent);
  const shown = open || isHere;
  const turn = () => {
    localStorage.setItem(KEPT, open ? "" : "open");
    setOpen(!open);
  };
  return html`<button type="button" class="manage" aria-expanded=${shown} disabled=${isHere} onClick=${turn}>
      <${Icon} name="settings" /><span class="grow">${t("Manage")}</span>${!isHere && html`<${Icon} name=${shown ? "minus" : "plus"} size=${14} />`}
    </button>
    ${shown && views.map((view) => html`<${Place} key=${view.path} view=${view} />`)}`;
}

function isCurrent(view) {
  const here = path.value;
  return view.path === "/" ? here === "/" || here.startsWith("/ask/") : here === view.path || here.startsWith(`${view.path}/`);
}

function Place({ view }) {
  const current = isCurrent(view);
  return html`<${Link} to=${view.path} aria-current=${current ? "page" : undefined}>
    <${Icon} name=${view.icon} /><span>${t(view.title)}</span>
  <//>`;
}

function AccountMenu() {
  const { username, email } = account.value ?? {};
  const trigger = html`<span class="avatar" aria-hidden="true">${username?.slice(0, 1).toUpperCase()}</span>
    <span class="who"><strong>${username}</strong><small>${email}</small></span>`;
  const other = LANGUAGES.filter((code) => code !== language.value);
  return html`<${Menu} label=${t("Your account")} trigger=${trigger} up items=${[
    { title: t("Your account"), icon: "account", onSelect: () => go("/account") },
    ...other.map((code) => ({ title: nameOfLanguage(code), icon: "globe", onSelect: () => chooseLanguage(code) })),
    { title: t("Sign out"), icon: "sign_out", onSelect: () => leavePage(signOut) },
  ]} />`;
}
