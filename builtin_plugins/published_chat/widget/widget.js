// The published chat on another site's page (README.md, "The widget"). One file; nothing else is loaded.
//
// Styles are constructable style sheets and every element is created through the DOM, so that it works on a page
// whose Content-Security-Policy allows neither inline styles nor inline scripts.
(() => {
  "use strict";

  const script = document.currentScript;
  if (!script) return;
  const address = new URL(script.src);
  const base = address.origin + address.pathname.replace(/\/widget\.js$/, "");
  const option = (name, otherwise) => script.dataset[name] || otherwise;
  const storageKey = `platform-chat:${base}`;

  const TEXTS = {
    title: "Chat",
    open: "Open chat",
    close: "Close chat",
    greeting: "Hello! What would you like to know?",
    placeholder: "Ask a question",
    question: "Your question",
    send: "Send",
    you: "You",
    answer: "Answer",
    thinking: "Looking for an answer…",
    next: "Your question will be sent when this answer is complete.",
    sources: "Sources",
    page: "page",
    sheet: "sheet",
    up: "This answer helped",
    down: "This answer did not help",
    comment: "What was good, or what was missing?",
    sendComment: "Send comment",
    thanks: "Thank you for your feedback.",
    minute: "That was a lot of questions. Please try again in {seconds} seconds.",
    day: "This chat has reached its limit of questions for today. Please come back tomorrow.",
    closed: "This chat is currently closed.",
    refused: "This chat is not enabled for this site.",
    long: "Your question is too long. Please use at most 8,000 characters.",
    offline: "The chat can't be reached. Please check your connection and try again.",
    failed: "The answer could not be finished. Please ask again.",
  };
  const text = (name) => option(`text${name[0].toUpperCase()}${name.slice(1)}`, TEXTS[name]);

  const STYLE = `
    :host { all: initial; --accent: #1456c4; --on-accent: #fff; --ground: #fff; --ink: #1c2330; --soft: #eef2f8;
      --line: #8a94a6; --quiet: #545d6d; --alarm: #a3121e; color-scheme: light; }
    :host([theme="dark"]) { --accent: #8ab4ff; --on-accent: #10192b; --ground: #171c26; --ink: #edf1f8;
      --soft: #242c3b; --line: #7d889c; --quiet: #b4bdcc; --alarm: #ff9c9c; color-scheme: dark; }
    @media (prefers-color-scheme: dark) { :host([theme="auto"]) { --accent: #8ab4ff; --on-accent: #10192b;
      --ground: #171c26; --ink: #edf1f8; --soft: #242c3b; --line: #7d889c; --quiet: #b4bdcc; --alarm: #ff9c9c;
      color-scheme: dark; } }
    * { box-sizing: border-box; }
    [hidden] { display: none !important; }
    .box { position: fixed; inset-block-end: 1.25rem; inset-inline-end: 1.25rem; z-index: 2147483000;
      font: 400 16px/1.5 system-ui, sans-serif; color: var(--ink); display: flex; flex-direction: column;
      align-items: flex-end; gap: 0.75rem; }
    :host([position="left"]) .box { inset-inline: 1.25rem auto; align-items: flex-start; }
    button, textarea { font: inherit; color: inherit; }
    button { cursor: pointer; border: 1px solid transparent; border-radius: 0.5rem; background: none; }
    :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
    .launch { width: 3.5rem; height: 3.5rem; border-radius: 50%; background: var(--accent);
      color: var(--on-accent); box-shadow: 0 4px 14px rgb(0 0 0 / 30%); display: grid; place-items: center; }
    svg { width: 1.5rem; height: 1.5rem; fill: none; stroke: currentColor; stroke-width: 2;
      stroke-linecap: round; stroke-linejoin: round; }
    .panel { width: min(24rem, calc(100vw - 2rem)); height: min(36rem, calc(100vh - 7rem));
      height: min(36rem, calc(100dvh - 7rem)); /* a phone's address bar takes its part of 100vh */
      background: var(--ground); border: 1px solid var(--line); border-radius: 0.9rem; overflow: hidden;
      display: flex; flex-direction: column; box-shadow: 0 10px 34px rgb(0 0 0 / 28%); }
    header { display: flex; align-items: center; gap: 0.5rem; padding: 0.7rem 0.5rem 0.7rem 1rem;
      background: var(--accent); color: var(--on-accent); }
    h2 { font-size: 1rem; font-weight: 600; margin: 0; flex: 1; overflow-wrap: anywhere;
      display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; }
    header button { padding: 0.25rem; display: grid; }
    header :focus-visible { outline-color: var(--on-accent); outline-offset: -1px; }
    .log { flex: 1; overflow-y: auto; padding: 1rem; display: flex; flex-direction: column; gap: 0.9rem; }
    .said { max-width: 92%; padding: 0.6rem 0.85rem; border-radius: 0.9rem; background: var(--soft);
      align-self: flex-start; overflow-wrap: anywhere; white-space: pre-wrap; }
    .mine { align-self: flex-end; background: var(--accent); color: var(--on-accent); }
    .alarm { background: none; border: 1px solid var(--alarm); color: var(--alarm); }
    .said, .words, q, textarea { unicode-bidi: plaintext; }
    .waiting { color: var(--quiet); }
    .hidden-text { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);
      white-space: nowrap; }
    details { margin-block-start: 0.5rem; font-size: 0.875rem; white-space: normal; }
    summary { cursor: pointer; color: var(--quiet); }
    ol { margin: 0.3rem 0 0; padding: 0; list-style: none; display: grid; gap: 0.5rem; }
    q { display: block; color: var(--quiet); quotes: none; }
    .rate { display: flex; gap: 0.25rem; margin-block-start: 0.4rem; }
    .rate button { padding: 0.25rem 0.4rem; color: var(--quiet); border-color: var(--line); }
    .rate button[aria-pressed="true"] { background: var(--accent); color: var(--on-accent); }
    .rate svg { width: 1.1rem; height: 1.1rem; display: block; }
    .comment { display: grid; gap: 0.4rem; margin-block-start: 0.5rem; font-size: 0.875rem; }
    .comment button { justify-self: end; padding: 0.25rem 0.7rem; border-color: var(--line); }
    .thanks { font-size: 0.875rem; color: var(--quiet); margin-block-start: 0.4rem; }
    .note { margin: 0; padding-inline: 1rem; font-size: 0.875rem; color: var(--quiet); }
    .note:not(:empty) { padding-block: 0.5rem; }
    form.ask { display: flex; gap: 0.5rem; padding: 0.75rem; border-block-start: 1px solid var(--line); }
    textarea { flex: 1; width: 100%; resize: none; padding: 0.5rem 0.65rem; border-radius: 0.6rem;
      border: 1px solid var(--line); background: var(--ground); }
    textarea::placeholder { color: var(--quiet); opacity: 1; }
    .send { background: var(--accent); color: var(--on-accent); padding: 0 0.8rem; display: grid;
      place-items: center; }
    @media (prefers-reduced-motion: no-preference) { .panel { animation: rise 140ms ease-out; }
      @keyframes rise { from { opacity: 0; transform: translateY(8px); } } }
  `;
  const ICONS = {
    chat: ["M21 12a8 8 0 0 1-8 8H4l2-3a8 8 0 1 1 15-5z"],
    close: ["M6 6l12 12", "M18 6L6 18"],
    send: ["M4 12h15", "M13 6l6 6-6 6"],
    up: ["M7 11v9H4v-9z", "M7 11l4-8c2 0 3 1 2.5 3L13 9h6l-1.5 11H7"],
    down: ["M7 13V4H4v9z", "M7 13l4 8c2 0 3-1 2.5-3L13 15h6L17.5 4H7"],
  };

  // Elements.

  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value === true) element.setAttribute(name, "");
      else if (value !== false && value !== null) element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }

  function icon(name) {
    const space = "http://www.w3.org/2000/svg";
    const drawn = document.createElementNS(space, "svg");
    drawn.setAttribute("viewBox", "0 0 24 24");
    drawn.setAttribute("aria-hidden", "true");
    for (const line of ICONS[name]) {
      const path = document.createElementNS(space, "path");
      path.setAttribute("d", line);
      drawn.append(path);
    }
    return drawn;
  }

  // The session: kept across reloads, only in this tab.

  const session = {
    token: null,
    renewAt: 0,
    async open() {
      const answer = await this.request(this.token);
      if (answer.status === 401 && this.token) {
        this.forget();
        return this.keep(await this.request(null));
      }
      return this.keep(answer);
    },
    request(token) {
      const headers = token ? { Authorization: `Bearer ${token}` } : {};
      return fetch(`${base}/session`, { method: "POST", headers, credentials: "omit" });
    },
    async keep(answer) {
      if (!answer.ok) throw await problem(answer);
      const body = await answer.json();
      this.token = body.token;
      this.renewAt = Date.now() + body.expires_in * 600; // after six tenths of its life
      try {
        sessionStorage.setItem(storageKey, JSON.stringify({ token: body.token, open: ui.isOpen() }));
      } catch {
        // Storage may be forbidden: the session then ends with the page.
      }
      return body.messages;
    },
    recall() {
      try {
        return JSON.parse(sessionStorage.getItem(storageKey) || "null");
      } catch {
        return null;
      }
    },
    remember(open) {
      try {
        sessionStorage.setItem(storageKey, JSON.stringify({ token: this.token, open }));
      } catch {
        // As above.
      }
    },
    forget() {
      this.token = null;
    },
    async post(path, body, accept) {
      if (!this.token || Date.now() > this.renewAt) await this.open();
      let answer = await this.send(path, body, accept);
      if (answer.status === 401) {
        await this.open();
        answer = await this.send(path, body, accept);
      }
      if (!answer.ok) throw await problem(answer);
      return answer;
    },
    send(path, body, accept) {
      return fetch(`${base}/${path}`, {
        method: "POST",
        credentials: "omit",
        headers: { Authorization: `Bearer ${this.token}`, "Content-Type": "application/json", Accept: accept },
        body: JSON.stringify(body),
      });
    },
  };

  class Problem extends Error {}

  async function problem(answer) {
    const body = await answer.json().catch(() => ({}));
    if (body.code === "daily_limit") return new Problem(text("day"));
    if (answer.status === 429) {
      return new Problem(text("minute").replace("{seconds}", answer.headers.get("Retry-After") || "60"));
    }
    if (body.code === "chat_closed" || answer.status === 404) return new Problem(text("closed"));
    if (answer.status === 403) return new Problem(text("refused"));
    if (answer.status === 413 || answer.status === 422) return new Problem(text("long"));
    return new Problem(text("failed"));
  }

  const wordsOf = (error) => (error instanceof Problem ? error.message : text("offline"));

  // An answer, as server-sent events over fetch: EventSource can't send a question.

  async function* events(answer) {
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let waiting = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (waiting + value).split("\n\n");
      waiting = blocks.pop();
      for (const block of blocks) {
        const lines = block.split("\n");
        const field = (name) => lines.filter((line) => line.startsWith(name)).map((line) => line.slice(name.length));
        const data = field("data: ").join("\n");
        if (data) yield [field("event: ").join(""), JSON.parse(data)];
      }
    }
  }

  // The user interface.

  const ui = {
    build(page) {
      const name = option("title", page.name || text("title"));
      this.host = make("platform-chat", {
        theme: option("theme", "auto"),
        position: option("position", "right"),
      });
      const root = this.host.attachShadow({ mode: "open" });
      root.adoptedStyleSheets = sheets();
      this.log = make("div", { class: "log", role: "log", "aria-live": "polite", "aria-label": name, tabindex: "0" });
      this.input = make("textarea", {
        rows: "2",
        maxlength: "8000",
        "aria-label": text("question"),
        placeholder: page.placeholder || text("placeholder"),
        onkeydown: (event) => this.key(event),
        oninput: () => this.queue(false),
      });
      this.note = make("p", { class: "note", role: "status" });
      this.sendButton = make("button", { class: "send", type: "submit", "aria-label": text("send") }, icon("send"));
      this.form = make("form", { class: "ask", onsubmit: (event) => this.submit(event) }, this.input, this.sendButton);
      this.panel = make(
        "section",
        { class: "panel", id: "panel", role: "dialog", "aria-labelledby": "title", hidden: true },
        make(
          "header",
          {},
          make("h2", { id: "title" }, name),
          make("button", { type: "button", "aria-label": text("close"), onclick: () => this.show(false) }, icon("close")),
        ),
        this.log,
        this.note,
        this.form,
      );
      this.launcher = make(
        "button",
        {
          class: "launch",
          type: "button",
          "aria-label": text("open"),
          "aria-expanded": "false",
          "aria-controls": "panel",
          onclick: () => this.show(!this.isOpen()),
        },
        icon("chat"),
      );
      const box = make("div", { class: "box" }, this.panel, this.launcher);
      box.addEventListener("keydown", (event) => {
        if (event.key === "Escape" && this.isOpen()) this.show(false);
      });
      root.append(box);
      this.say("said", page.greeting || text("greeting"));
      document.body.append(this.host);
    },

    isOpen() {
      return Boolean(this.panel && !this.panel.hidden);
    },

    show(open, focus = true) {
      this.panel.hidden = !open;
      this.launcher.setAttribute("aria-expanded", String(open));
      this.launcher.setAttribute("aria-label", text(open ? "close" : "open"));
      session.remember(open);
      if (focus) (open ? this.input : this.launcher).focus();
    },

    key(event) {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        this.form.requestSubmit();
      }
    },

    async submit(event) {
      event.preventDefault();
      const question = this.input.value.trim();
      if (!question) return;
      if (this.answering) {
        this.queue(true);
        return;
      }
      this.input.value = "";
      this.busy(true);
      this.ask(question);
      const shown = this.expect();
      let complete = false;
      try {
        await this.stream(await session.post("messages", { question }, "text/event-stream"), shown);
        complete = true;
      } catch (error) {
        shown.remove();
        this.say("said alarm", wordsOf(error)).setAttribute("role", "alert");
        this.input.value = this.input.value || question;
      } finally {
        const next = complete && this.queued;
        this.queue(false);
        this.busy(false);
        if (next) this.form.requestSubmit();
        this.input.focus();
      }
    },

    // A question sent while an answer arrives is asked after it, unless it is changed meanwhile.
    queue(queued) {
      this.queued = queued;
      this.note.textContent = queued ? text("next") : "";
    },

    busy(busy) {
      this.answering = busy;
      this.log.setAttribute("aria-busy", String(busy));
    },

    async stream(answer, shown) {
      const words = shown.querySelector(".words");
      let told = "";
      for await (const [name, value] of events(answer)) {
        if (name === "token") {
          if (!told) shown.classList.remove("waiting");
          told += value.text;
          words.textContent = told;
          this.scroll();
        } else if (name === "done") {
          this.finish(shown, value);
          return;
        } else if (name === "error") {
          throw new Problem(text("failed"));
        }
      }
      throw new Problem(text("failed"));
    },

    ask(question) {
      this.say("said mine", question, text("you"));
    },

    expect() {
      const shown = this.say("said waiting", text("thinking"), text("answer"));
      return shown;
    },

    say(kind, words, who) {
      const spoken = who ? [make("span", { class: "hidden-text" }, `${who}: `)] : [];
      const shown = make("div", { class: kind }, ...spoken, make("span", { class: "words" }, words));
      this.log.append(shown);
      this.scroll();
      return shown;
    },

    scroll() {
      this.log.scrollTop = this.log.scrollHeight;
    },

    finish(shown, answer, rating = null) {
      shown.classList.remove("waiting");
      shown.querySelector(".words").textContent = answer.answer;
      if (answer.sources && answer.sources.length) shown.append(this.sources(answer.sources));
      shown.append(...this.thumbs(answer.turn_id, rating));
      this.scroll();
    },

    sources(cited) {
      const items = cited.map((one) => {
        const page = one.page ? `${text(/\.(xls[xmb]?|ods)$/i.test(one.source) ? "sheet" : "page")} ${one.page}` : null;
        const place = [one.source, one.section, page].filter(Boolean).join(", ");
        return make("li", {}, make("strong", {}, `[${one.number}] ${place}`), make("q", {}, one.text));
      });
      return make("details", {}, make("summary", {}, `${text("sources")} (${cited.length})`), make("ol", {}, ...items));
    },

    thumbs(turnId, rating) {
      const thanks = make("div", { class: "thanks", role: "status" });
      const buttons = ["up", "down"].map((which) =>
        make(
          "button",
          {
            type: "button",
            "aria-label": text(which),
            "aria-pressed": String(rating === which),
            onclick: () => rate(which),
          },
          icon(which),
        ),
      );
      const field = make("textarea", { rows: "2", maxlength: "2000", "aria-label": text("comment"), placeholder: text("comment") });
      const comment = make(
        "form",
        { class: "comment", hidden: true, onsubmit: (event) => send(event) },
        field,
        make("button", { type: "submit" }, text("sendComment")),
      );
      let given = rating;
      const post = (body) => session.post("feedback", { turn_id: turnId, rating: given, ...body }, "application/json");
      const rate = async (which) => {
        given = which;
        buttons.forEach((one, at) => one.setAttribute("aria-pressed", String(["up", "down"][at] === which)));
        comment.hidden = false;
        comment.scrollIntoView({ block: "nearest" });
        await tell(() => post({}), false);
      };
      const send = async (event) => {
        event.preventDefault();
        const words = field.value.trim();
        comment.hidden = true;
        await tell(() => post(words ? { comment: words } : {}), true);
        this.input.focus();
      };
      const tell = async (work, last) => {
        try {
          await work();
          if (last) thanks.textContent = text("thanks");
        } catch (error) {
          thanks.textContent = wordsOf(error);
        }
      };
      return [make("div", { class: "rate" }, ...buttons), comment, thanks];
    },

    restore(messages) {
      for (const one of messages) {
        this.ask(one.question);
        this.finish(this.expect(), { ...one, sources: [] }, one.rating);
      }
    },
  };

  function sheets() {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    const own = new CSSStyleSheet();
    const colours = { accent: option("accent", ""), "on-accent": option("onAccent", "") };
    const given = Object.entries(colours).filter(([, colour]) => colour && CSS.supports("color", colour));
    if (given.length) {
      own.replaceSync(":host { }");
      for (const [name, colour] of given) own.cssRules[0].style.setProperty(`--${name}`, colour, "important");
    }
    return [sheet, own];
  }

  async function start() {
    const known = session.recall();
    session.token = known && known.token;
    let page = {};
    let trouble = null;
    try {
      const answer = await fetch(base, { credentials: "omit" });
      if (answer.ok) page = await answer.json();
      else trouble = await problem(answer);
    } catch (error) {
      trouble = error;
    }
    ui.build(page);
    if (trouble) {
      ui.say("said alarm", wordsOf(trouble));
      return;
    }
    if (!session.token) return;
    try {
      ui.restore(await session.open());
    } catch {
      session.forget();
    }
    if (known.open) ui.show(true, false);
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
