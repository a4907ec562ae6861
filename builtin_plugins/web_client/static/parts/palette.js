/** The command palette: go anywhere and do anything by its name. */

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../lib/html.js";
import { api } from "../lib/api.js";
import { isComposing } from "../lib/keyboard.js";
import { useResource } from "../lib/resource.js";
import { go } from "../lib/router.js";
import { LANGUAGES, chooseLanguage, nameOfLanguage, t } from "../lib/words.js";
import { signOut } from "../pages/sign-in/sign-out.js";
import { VIEWS, navigation } from "../views.js";
import { Icon } from "./icons.js";
import { useBack } from "./layers.js";
import { searchByName } from "./palette-search.js";
import { leavePage } from "./staying.js";

const MOST = 12;

/** The available commands, without those for views that this account doesn't have. */
function commands() {
  const places = [
    { title: t("Your account"), icon: "account", to: "/account" },
    { title: t("New knowledge base"), icon: "plus", to: "/documents?new=1" },
    { title: t("New pipeline"), icon: "plus", to: "/pipelines?new=1" },
    { title: t("New key for a program"), icon: "plus", to: "/keys?new=1" },
    { title: t("Organizations"), icon: "organization", to: "/people/organizations" },
    { title: t("Marketplace"), icon: "plugins", to: "/plugins/marketplace" },
  ].filter(({ to }) => VIEWS.some((view) => view.path === to.split("?")[0]));
  return [
    ...navigation().map((view) => ({ title: t(view.title), icon: view.icon, keys: view.keys, run: () => go(view.path) })),
    ...places.map((place) => ({ ...place, run: () => go(place.to) })),
    ...LANGUAGES.map((code) => ({ title: nameOfLanguage(code), icon: "globe", run: () => chooseLanguage(code) })),
    { title: t("Sign out"), icon: "sign_out", run: () => leavePage(signOut) },
  ];
}

/** The latest conversations, one's own and shared ones; none if the server stores none. */
async function conversations(query, signal) {
  const lists = [api.conversations, api.sharedConversations].map((list) => list({ query, signal }));
  return (await Promise.all(lists).catch(() => [])).flatMap((list) => list.items);
}

async function things(signal) {
  const query = { limit: 100 };
  const [bases, pipelines, talks] = await Promise.all([api.knowledgeBases({ query, signal }), api.pipelines({ query, signal }), conversations(query, signal)]);
  return [
    ...bases.items.map((base) => ({ title: base.name, about: t("Knowledge base"), icon: "documents", run: () => go(`/documents/${base.id}`) })),
    ...pipelines.items.map((item) => ({ title: item.name, about: t("Ask"), icon: "ask", run: () => go(`/?pipeline=${item.id}`) })),
    ...talks.map((item) => ({ title: item.title || item.first_question || t("Untitled"), about: t("Conversation"), icon: "ask", run: () => go(`/ask/${encodeURIComponent(item.conversation_id)}`) })),
  ];
}

export function Palette({ onClose }) {
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  const box = useRef(null);
  const found = useResource(things, []);
    const named = useResource((signal) => searchByName(text, signal), [text]);
  useBack(box, onClose);
  // Before the next key press, which should already go into it.
  useLayoutEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    return () => {
      box.current?.close();
      before?.focus?.();
    };
  }, []);
  useEffect(() => {
    box.current.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  const shown = useMemo(() => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const all = [...commands(), ...(found.data ?? [])];
    const fitting = all.filter((item) => words.every((word) => item.title.toLowerCase().includes(word)));
    return [...fitting.slice(0, MOST), ...(named.data ?? [])];
  }, [text, found.data, named.data]);
  const run = (item) => {
    onClose();
    item?.run();
  };
  const keys = (event) => {
    if (isComposing(event)) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      setChosen((was) => (was + step + shown.length) % Math.max(shown.length, 1));
    }
    if (event.key !== "Enter") return;
    event.preventDefault(); // it would press a button of what opens
    run(shown[chosen]);
  };
  const type = (event) => {
    setText(event.target.value);
    setChosen(0);
  };
  return html`<dialog ref=${box} class="palette" aria-label=${t("Find anything")} onCancel=${onClose} onMouseDown=${(event) => event.target === box.current && onClose()}>
    <div class="palette-inside">
      <div class="palette-input"><${Icon} name="search" />
        <input type="text" role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant=${`palette-${chosen}`}
          aria-label=${t("Find anything")} placeholder=${t("Go to a page, a knowledge base, a command …")} value=${text} onInput=${type} onKeyDown=${keys} autofocus />
      </div>
      <ul id="palette-list" role="listbox" aria-label=${t("Commands")}>
        ${shown.map(
          (item, index) => html`<li id=${`palette-${index}`} role="option" aria-selected=${index === chosen} onMouseMove=${() => setChosen(index)} onClick=${() => run(item)}>
            <${Icon} name=${item.icon} /><span class="grow clip">${item.title}</span>
            ${item.about && html`<small>${item.about}</small>`}${item.keys && html`<kbd>${item.keys}</kbd>`}
          </li>`,
        )}
        ${found.error && html`<li class="nothing bad" role="option" aria-selected="false">${found.error.message}</li>`}
        ${!shown.length && !named.loading && html`<li class="nothing" role="option" aria-selected="false">${t("Nothing matches.")}</li>`}
      </ul>
    </div>
  </dialog>`;
}
