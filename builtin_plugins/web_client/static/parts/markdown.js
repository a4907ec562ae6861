/**
 * The Markdown that models write, as elements; never as HTML, so that no text of a document or a model becomes
 * part of the page. `cite(n)` makes what stands for [n].
 */

import { h, html, useMemo } from "../lib/html.js";
import { Formula } from "./formula.js";
import { blocksOf } from "./markdown-blocks.js";

/** \(…\) and \[…\]; $$…$$; and $…$ unless it may be money or a variable of a shell. */
const FORMULA = /\\\(([^\n]{1,1000}?)\\\)|\\\[([^\n]{1,1000}?)\\\]|\$\$([^$\n]+)\$\$|(?<![\p{L}\p{N}$\\])\$(?=[^\s$])([^$\n]*[^\s$\\])\$(?![\p{L}\p{N}$])/u;
const MARKS =
  /\\([*_~`|#$])|\[(\d{1,3})\]|`([^`]+)`|\*\*((?:[^*]|\*(?!\*)|\*(?=\*\*(?!\*)))+)\*\*|\*([^*\s][^*]*)\*|(?<![\p{L}\p{N}_])__([^_]+)__(?![\p{L}\p{N}_])|(?<![\p{L}\p{N}_])_([^_\s][^_]*)_(?![\p{L}\p{N}_])|~~([^~]+)~~|<br ?\/?>|\[([^[\]]+)\]\((https?:\/\/[^\s)[]+)\)|(https?:\/\/[^\s<>()[\]]*[^\s<>()[\].,;:!?'"*_|])/gu;
const INLINE = new RegExp(`${FORMULA.source}|${MARKS.source}`, "gu");
const BOX = /^\[([ xX])\] /;

export function Markdown({ text, cite = (label) => `[${label}]` }) {
  const blocks = useMemo(() => blocksOf(text), [text]);
  const highest = Math.min(...blocks.filter((block) => block.kind === "heading").map((block) => block.level));
  return html`<div class="markdown">${blocks.map((block) => render(block, cite, highest))}</div>`;
}

/** The page's own headings are above those of the text, whatever level it begins with. */
function render(block, cite, highest = 1) {
  const line = (text) => inline(text, cite);
  switch (block.kind) {
    case "code":
      return html`<pre tabindex="0"><code>${block.text}</code></pre>`;
    case "heading":
      return h(`h${Math.min(6, 3 + Math.max(0, block.level - highest))}`, null, line(block.text));
    case "formula":
      return html`<${Formula} text=${block.text} source=${block.source} isBlock />`;
    case "rule":
      return html`<hr />`;
    case "bullets":
      return html`<ul dir="auto">${block.items.map((item) => html`<li>${inside(item, cite)}</li>`)}</ul>`;
    case "numbers":
      return html`<ol dir="auto" start=${block.start}>${block.items.map((item) => html`<li>${inside(item, cite)}</li>`)}</ol>`;
    case "quote":
      return html`<blockquote dir="auto">${line(block.text)}</blockquote>`;
    case "table":
      return table(block, line);
    default:
      return html`<p>${linesOf(block, line)}</p>`;
  }
}

const linesOf = ({ items }, line) => items.map((item, index) => html`${index > 0 && html`<br />`}${line(item)}`);

/** An item's text, and below it what belongs to it. A checkbox is shown as a character. */
function inside([first, ...others], cite) {
  if (first?.kind !== "paragraph") return [first, ...others].filter(Boolean).map((block) => render(block, cite));
  const [begin, ...more] = first.items;
  const items = [begin.replace(BOX, (_, mark) => (mark === " " ? "☐ " : "☑ ")), ...more];
  return [linesOf({ items }, (text) => inline(text, cite)), ...others.map((block) => render(block, cite))];
}

function table({ head, body, sides }, line) {
  const cells = (row, Cell) => row.map((cell, index) => html`<${Cell} class=${sides[index] || undefined}>${line(cell)}<//>`);
  return html`<div class="table-box"><table dir="auto">
    <thead><tr>${cells(head, "th")}</tr></thead>
    <tbody>${body.map((row) => html`<tr>${cells(row, "td")}</tr>`)}</tbody>
  </table></div>`;
}

/** Formulas and marks in a line. */
function inline(text, cite) {
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    const [whole, round, square, double, single, mark, label, code, bold, italic, strong, slanted, gone, title, address, bare] = found;
    parts.push(text.slice(at, found.index));
    const formula = round ?? square ?? double ?? single;
    if (formula) parts.push(html`<${Formula} text=${formula} source=${whole} isBlock=${Boolean(square ?? double)} />`);
    else if (mark) parts.push(mark);
    else if (label) parts.push(cite(Number(label)));
    else if (code) parts.push(html`<code>${code}</code>`);
    else if (bold ?? strong) parts.push(html`<strong>${inline(bold ?? strong, cite)}</strong>`);
    else if (italic ?? slanted) parts.push(html`<em>${inline(italic ?? slanted, cite)}</em>`);
    else if (gone) parts.push(html`<s>${inline(gone, cite)}</s>`);
    else if (address ?? bare) parts.push(html`<a href=${address ?? bare} target="_blank" rel="noreferrer noopener">${title ?? bare}</a>`);
    else parts.push(html`<br />`);
    at = found.index + whole.length;
  }
  parts.push(text.slice(at));
  return parts;
}
