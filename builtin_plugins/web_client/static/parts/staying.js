/**
 * Forms on the page itself, such as settings: whoever leaves the page with something entered is asked first, by a link as
 * by Back. Browsers without such events leave it.
 */

import { html, useEffect, useState } from "../lib/html.js";
import { go, placeAt } from "../lib/router.js";
import { forgetChanges, isChanged } from "./changes.js";
import { Discard } from "./layers.js";

const page = () => document.getElementById("main");

export function Staying() {
  const [leave, setLeave] = useState(null);
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
      setLeave(() => way);
    };
    navigation.addEventListener("navigate", ask);
    return () => navigation.removeEventListener("navigate", ask);
  }, []);
  if (!leave) return null;
  const discard = () => {
    forgetChanges(page());
    leave();
  };
  return html`<${Discard} onDiscard=${discard} onClose=${() => setLeave(null)} />`;
}
