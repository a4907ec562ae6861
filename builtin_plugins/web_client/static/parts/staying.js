/**
 * Forms on the page itself, such as settings: whoever leaves the page with something entered is asked first, by a link as
 * by Back, and before signing out. Browsers without such events leave it by links and Back.
 */

import { html, signal, useEffect } from "../lib/html.js";
import { go, placeAt } from "../lib/router.js";
import { forgetChanges, isChanged } from "./changes.js";
import { Discard } from "./layers.js";

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

export function Staying() {
  useEffect(() => stay, []);
  useEffect(() => {
    if (!("navigation" in window)) return undefined;
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
    forgetChanges(page());
    leave();
  };
  return html`<${Discard} onDiscard=${discard} onClose=${stay} />`;
}
