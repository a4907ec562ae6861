/**
 * The Markdown that models write, as elements; never as HTML, so that no text of a document or a model becomes
 * part of the page. `cite(n)` makes what stands for [n]. The library that reads it is loaded with the page; until
 * then, and if it can't be loaded, the text is shown as it was written.
 */

import { h, html, signal, useEffect, useMemo } from "../lib/html.js";
import { whenThere } from "../lib/http.js";
import { Formula } from "./formula.js";
import { readerOf } from "./markdown-rules.js";

const DEEPEST = 100; // elements in one another; what is deeper is shown in the last of them
const BOX = /^\[([ xX])\] /;
const LISTS = ["ul", "ol", "blockquote"];

const reader = signal(null);
let wanted = false;

function load() {
  if (wanted) return;
  wanted = true;
  whenThere(() => import("../vendor/markdown-it.js")).then(
    (module) => {
      reader.value = readerOf(module.default);
    },
    () => {
      wanted = false;
    },
  );
}

export function Markdown({ text, cite = (label) => `[${label}]` }) {
  useEffect(load, []);
  const tokens = useMemo(() => reader.value?.parse(text, {}), [text, reader.value]);
  if (!tokens) return html`<div class="markdown"><p class="unread">${text}</p></div>`;
  const highest = tokens.reduce((level, token) => (token.type === "heading_open" ? Math.min(level, levelOf(token)) : level), 6);
  return html`<div class="markdown">${elementsOf(tokens, { cite, highest })}</div>`;
}

const levelOf = (token) => Number(token.tag.slice(1));

/** The elements of tokens, which come in pairs around their contents. */
function elementsOf(tokens, page) {
  const open = [];
  let children = [];
  let links = 0;
  tokens.forEach((token, index) => {
    if (token.tag === "a") links += token.nesting;
    if (token.nesting === 1) {
      open.push({ token, outside: children });
      if (open.length <= DEEPEST) children = [];
    } else if (token.nesting === -1) {
      const { token: begin, outside } = open.pop();
      if (outside === children) return;
      if (begin.hidden) for (const child of children) outside.push(child);
      else outside.push(elementOf(begin, children, page));
      children = outside;
    } else if (token.type === "image") children.push(picture(token, links > 0));
    else children.push(single(token, page, tokens[index - 2]));
  });
  return children;
}

/** The page's own headings are above those of the text, whatever level it begins with. */
function elementOf(token, children, { highest }) {
  const { tag } = token;
  switch (token.type) {
    case "heading_open":
      return h(`h${Math.min(6, 3 + levelOf(token) - highest)}`, null, children);
    case "link_open":
      return link(token.attrGet("href"), children, token.attrGet("title"));
    case "table_open":
      return html`<div class="table-box"><table dir="auto">${children}</table></div>`;
    case "th_open":
    case "td_open":
      return h(tag, { class: token.attrGet("style") === "text-align:right" ? "right" : undefined }, children);
    default:
      return h(tag, LISTS.includes(tag) ? { dir: "auto", start: token.attrGet("start") ?? undefined } : null, children);
  }
}

/** A token without contents; `before` says whether it begins an item of a list. */
function single(token, page, before) {
  switch (token.type) {
    case "inline":
      return before?.type === "list_item_open" ? boxed(elementsOf(token.children, page)) : elementsOf(token.children, page);
    case "code_inline":
      return html`<code>${token.content}</code>`;
    case "fence":
    case "code_block":
      return html`<pre tabindex="0"><code>${token.content}</code></pre>`;
    case "hardbreak":
    case "softbreak":
      return html`<br />`;
    case "hr":
      return html`<hr />`;
    case "citation":
      return page.cite(token.meta.label);
    case "formula":
      return html`<${Formula} ...${token.meta} />`;
    default:
      return token.content;
  }
}

/** A checkbox is shown as a character. */
const boxed = ([first, ...others]) => [
  typeof first === "string" ? first.replace(BOX, (_, mark) => (mark === " " ? "☐ " : "☑ ")) : first,
  ...others,
];

const link = (address, children, title) =>
  html`<a href=${address} title=${title ?? undefined} target="_blank" rel="noreferrer noopener">${children}</a>`;

/** Nothing is loaded from elsewhere, so a picture is a link; in a link, its text. */
function picture(token, isInLink) {
  const address = token.attrGet("src");
  const text = wordsOf(token.children) || address;
  return isInLink ? text : link(address, text, token.attrGet("title"));
}

const wordsOf = (tokens) => tokens.map((token) => (token.children ? wordsOf(token.children) : token.content)).join("");
