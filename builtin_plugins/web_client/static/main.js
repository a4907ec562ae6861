/** The start: who is signed in, which view the address names, and the frame around it. */

import { html, render, useEffect, useState } from "./lib/html.js";
import { whenThere } from "./lib/http.js";
import { account, beginWithToken, mustChangePassword, resume } from "./lib/session.js";
import { go, match, path } from "./lib/router.js";
import { replaceBlockedStorage } from "./lib/storage.js";
import { loadLanguage, t } from "./lib/words.js";
import { Head, Notice, Skeleton } from "./parts/basics.js";
import { Messages } from "./parts/layers.js";
import { Outage } from "./parts/outage.js";
import { MOVED, OPEN_VIEWS, VIEWS, isAllowed } from "./views.js";

/**
 * Single sign-on returns the token, or the error, in the fragment, which no server sees (spec 5.5). So comes the code
 * for the first account, which the terminal shows as a link.
 *
 * A link with a stranger's token would make people work in the stranger's account: a token is only accepted at once in
 * the tab that started the sign-in; elsewhere, its name is shown and has to be confirmed.
 */
function takeFragment() {
  const found = new URLSearchParams(location.hash.slice(1));
  const firstCode = found.get("first-account");
  if (firstCode) {
    go("/login", { replace: true });
    return { firstCode };
  }
  if (path.value !== "/auth/callback") return {};
  const back = sessionStorage.getItem("platform.return");
  sessionStorage.removeItem("platform.return");
  const token = found.get("token");
  const asked = back !== null;
  if (token && asked) beginWithToken(token);
  go(token && asked ? back : "/login", { replace: true });
  if (token) return asked ? {} : { offered: token };
  return { problem: found.get("error_description") ?? found.get("error") ?? "" };
}

function viewOf(actual) {
  const views = account.value && !mustChangePassword.value ? [...VIEWS, ...OPEN_VIEWS] : OPEN_VIEWS;
  for (const view of views) {
    const values = match(view.path, actual);
    if (values) return { view, values };
  }
  return null;
}

/** The view of an address; its code is loaded when first needed, unless it is bundled with this. */
function View({ view, values }) {
  const [found, setFound] = useState(null);
  useEffect(() => {
    let wanted = true;
    if (view.page) return undefined;
    whenThere(view.load).then(
      (module) => wanted && setFound({ load: view.load, Page: module.default }),
      () => wanted && setFound({ load: view.load, Page: Outdated }),
    );
    return () => {
      wanted = false;
    };
  }, [view.load]);
  useEffect(() => {
    document.title = view.title ? `${t(view.title)} · Platform` : "Platform";
  }, [view]);
  if (view.page) return html`<${view.page} ...${values} />`;
  if (found?.load !== view.load) return html`<div class="page"><${Skeleton} lines=${5} /></div>`;
  return html`<${found.Page} key=${view.load} ...${values} />`;
}

/** The server was updated while this page was open: its old files are gone. */
const Outdated = () => html`<div class="page">
  <${Notice} tone="warn" title=${t("This page has been updated on the server")} onRetry=${() => location.reload()}>
    ${t("Reload it to go on.")}
  <//>
</div>`;

function App({ arrival }) {
  const here = path.value;
  const [Frame, setFrame] = useState(null);
  const signedIn = account.value !== null && !mustChangePassword.value;
  useEffect(() => {
    if (!signedIn || Frame) return;
    whenThere(() => import("./parts/frame.js")).then(
      (module) => setFrame(() => module.Frame),
      () => setFrame(() => Outdated),
    );
  }, [signedIn]);
  const found = viewOf(here);
  if (!signedIn && !found) {
    const SignIn = OPEN_VIEWS[0];
    return html`<${View} view=${SignIn} values=${arrival} /><${Outage} /><${Messages} />`;
  }
  if (found && OPEN_VIEWS.includes(found.view)) {
    return html`<${View} view=${found.view} values=${{ ...found.values, ...arrival }} /><${Outage} /><${Messages} />`;
  }
  if (!Frame) return html`<div class="page"><${Skeleton} lines=${5} /></div>`;
  return html`<${Frame}>${!found ? html`<${Unknown} />` : isAllowed(found.view) ? html`<${View} view=${found.view} values=${found.values} />` : html`<${Forbidden} />`}<//><${Messages} />`;
}

const Unknown = () => html`<div class="page">
  <${Head} title=${t("There is no page at this address")} about=${t("It may have been moved or deleted.")} />
</div>`;

const Forbidden = () => html`<div class="page">
  <${Head} title=${t("This page is not for your account")} about=${t("Only administrators can use it. Ask one if you need something from it.")} />
</div>`;

/** Load what will be drawn soon, the frame and its view, in parallel. */
function fetchAhead() {
  const wanted = [import("./parts/frame.js"), viewOf(path.value)?.view.load?.()];
  Promise.all(wanted).catch(() => {}); // reported when it is drawn
}

/**
 * Most visitors wait for nothing here. Others wait for the texts of another language, for another tab's session, or,
 * within a time limit, for a new token in place of one about to expire. If any of it fails, the page is still shown: in
 * English, or with the sign-in.
 */
async function begin() {
  replaceBlockedStorage();
  if (MOVED[path.value]) go(MOVED[path.value], { replace: true });
  const arrival = takeFragment();
  await Promise.allSettled([loadLanguage(), resume()]);
  if (account.value) fetchAhead();
  render(html`<${App} arrival=${arrival} />`, document.getElementById("app"));
}

begin();
