/**
 * Forms on the page itself, such as settings: whoever leaves the page with something entered is asked first, by a link as
 * by Back, and before signing out.
 */

import { html, signal, useEffect } from "../lib/html.js";
import { go, guard, placeAt } from "../lib/router.js";
import { forgetChanges, isChanged } from "./changes.js";
import { Discard } from "./layers.js";

const forms = () => [...document.querySelectorAll("#main, dialog[open]")];
const page = () => document.getElementById("main");
const leaving = signal(null); // what to do once somebody has been asked

/** Do what ends this page, after a question if something that was entered would be lost. */
export function leavePage(leave) {
  if (isChanged(page())) leaving.value = leave;
  else leave();
}

const stay = () => {
  leaving.value = null;
};

/** The router's question, in browsers without events of navigation, where dialogs can't ask for themselves. */
function askFirst(leave) {
  const isKept = forms().some(isChanged);
  if (isKept) leaving.value = leave;
  return isKept;
}

export function Staying() {
  useEffect(() => stay, []);
  useEffect(() => {
    if (!("navigation" in window)) return guard(askFirst);
    const { navigation } = window;
    const ask = (event) => {
      const { url, key, sameDocument } = event.destination;
      const ways = { push: () => go(placeAt(url)), traverse: () => navigation.traverseTo(key) };
      const way = ways[event.navigationType];
      if (!way || !sameDocument || !event.cancelable || event.hashChange || !isChanged(page())) return;
      // A dialog asks for itself, and Back closes even the one with the commands.
      if (document.querySelector(event.navigationType === "push" ? "#main dialog[open]" : "dialog[open]")) return;
      event.preventDefault();
      leaving.value = way;
    };
    navigation.addEventListener("navigate", ask);
    return () => navigation.removeEventListener("navigate", ask);
  }, []);
  const leave = leaving.value;
  if (!leave) return null;
  const discard = () => {
    forms().forEach(forgetChanges);
    leave();
  };
  return html`<${Discard} onDiscard=${discard} onClose=${stay} />`;
}
