/** How a published chat looks: its texts, colors and position, with a preview and the line that embeds it. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { apiAddress } from "../../lib/place.js";
import { useAction } from "../../lib/resource.js";
import { t } from "../../lib/words.js";
import { Copyable } from "../../parts/basics.js";
import { Field, Form } from "../../parts/forms.js";
import { say } from "../../parts/layers.js";

const ACCENT = "#3257c8";

export function Looks({ chat, onSaved }) {
  const [texts, setTexts] = useState({ name: chat.name, greeting: chat.rag_config.greeting ?? "", placeholder: chat.rag_config.placeholder ?? "", origins: chat.allowed_origins ?? "" });
  const [style, setStyle] = useState({ theme: "auto", accent: ACCENT, position: "right" });
  const set = (name) => (value) => setTexts({ ...texts, [name]: value });
  const dress = (name) => (value) => setStyle({ ...style, [name]: value });
  const action = useAction(async () => {
    const config = { ...chat.rag_config, greeting: texts.greeting.trim() || null, placeholder: texts.placeholder.trim() || null };
    await api.changeChat({ endpoint_id: chat.id, body: { name: texts.name, allowed_origins: texts.origins.trim(), rag_config: config } });
    say(t("Saved"));
    onSaved();
  });
  const wrong = action.error?.fields ?? {};
  return html`<div class="halves">
    <div class="stack">
      <${Form} action=${action} submit=${t("Save")} disabled=${!texts.name.trim()}>
        <${Field} label=${t("Name")} value=${texts.name} onInput=${set("name")} error=${wrong.name} required />
        <${Field} label=${t("Greeting")} value=${texts.greeting} onInput=${set("greeting")} error=${wrong.greeting} maxlength="500" optional />
        <${Field} label=${t("Placeholder of the question field")} value=${texts.placeholder} onInput=${set("placeholder")} error=${wrong.placeholder} maxlength="100" optional />
        <${Field} label=${t("Sites that may show it")} value=${texts.origins} onInput=${set("origins")} hint=${t("Origins, separated by commas.")} error=${wrong.allowed_origins} optional />
      <//>
      <h2>${t("Look")}</h2>
      <p class="muted">${t("What you choose here goes into the line for the site.")}</p>
      <${Field} as="select" label=${t("Colors")} value=${style.theme} onInput=${dress("theme")}>
        <option value="auto">${t("Same as the visitor’s system")}</option><option value="light">${t("Light")}</option><option value="dark">${t("Dark")}</option><//>
      <${Field} label=${t("Button color")} type="color" value=${style.accent} onInput=${dress("accent")} />
      <${Field} as="select" label=${t("Position on the page")} value=${style.position} onInput=${dress("position")}>
        <option value="right">${t("On the right")}</option><option value="left">${t("On the left")}</option><//>
    </div>
    <div class="stack">
      <h2>${t("Preview")}</h2>
      <${Preview} texts=${texts} style=${style} />
      <p class="muted">${t("Add this line to the pages of the site:")}</p>
      <${Copyable} block text=${lineOf(chat, style)} label=${t("Embed")} />
    </div>
  </div>`;
}

function lineOf(chat, { theme, accent, position }) {
  const own = [theme !== "auto" && `data-theme="${theme}"`, accent !== ACCENT && `data-accent="${accent}"`, position !== "right" && `data-position="${position}"`].filter(Boolean);
  return `<script src="${apiAddress(chat.widget)}" ${[...own, "async"].join(" ")}></script>`;
}

function Preview({ texts, style }) {
  const scheme = style.theme === "auto" ? undefined : style.theme;
  return html`<div class=${style.position === "left" ? "chat-preview at-left" : "chat-preview"} style=${{ colorScheme: scheme, "--preview-accent": style.accent }} aria-hidden="true">
    <div class="chat-preview-window">
      <strong>${texts.name}</strong>
      <p class="chat-preview-text">${texts.greeting || t("Ask me about our documents.")}</p>
      <span class="chat-preview-field">${texts.placeholder || t("Your question")}</span>
    </div>
    <span class="chat-preview-button"></span>
  </div>`;
}
