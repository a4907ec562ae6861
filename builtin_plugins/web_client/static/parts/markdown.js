/**
 * The Markdown that models write, as elements; never as HTML, so that no text of a document or a model becomes
 * part of the page. `cite(n)` makes what stands for [n].
 */

import { html, useMemo } from "../lib/html.js";

const BLOCK = /^(?:(#{1,6})\s+(.*)|\s*[-*+]\s+(.*)|\s*(\d{1,4})[.)]\s+(.*)|>\s?(.*)|```(.*))$/;
const INLINE = /\[(\d{1,3})\]|`([^`]+)`|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*|\[([^[\]]+)\]\((https?:\/\/[^\s)[]+)\)/g;

export function Markdown({ text, cite = (label) => `[${label}]` }) {
  return html`<div class="markdown">${useMemo(() => blocks(text), [text]).map((block) => render(block, cite))}</div>`;
}

/** Paragraphs, headings, lists, quotes, tables and code, as plain objects. */
function blocks(text) {
  const found = [];
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  for (let index = 0; index < lines.length; index += 1) {
    const line = lines[index];
    const [, hashes, heading, bullet, order, item, quote, fence] = line.match(BLOCK) ?? [];
    const last = found.at(-1);
    if (fence !== undefined) {
      const begin = index + 1;
      do index += 1;
      while (index < lines.length && !lines[index].startsWith("```"));
      found.push({ kind: "code", text: lines.slice(begin, index).join("\n") });
    } else if (hashes) found.push({ kind: "heading", text: heading });
    else if (bullet !== undefined) add(found, last, "bullets", bullet);
    else if (item !== undefined) add(found, last, "numbers", item, Number(order));
    else if (quote !== undefined) add(found, last, "quote", quote);
    else if (/^\s*\|.*\|\s*$/.test(line)) add(found, last, "table", line);
    else if (!line.trim()) found.push({ kind: "gap" });
    else if (last?.kind === "paragraph") last.items.push(line);
    else found.push({ kind: "paragraph", items: [line] });
  }
  return found.filter((block) => block.kind !== "gap");
}

function add(found, last, kind, item, start) {
  if (last?.kind === kind) last.items.push(item);
  else found.push({ kind, items: [item], start });
}

function render(block, cite) {
  const line = (text) => inline(text, cite);
  switch (block.kind) {
    case "code":
      return html`<pre tabindex="0"><code>${block.text}</code></pre>`;
    case "heading":
      return html`<h3>${line(block.text)}</h3>`;
    case "bullets":
      return html`<ul>${block.items.map((item) => html`<li>${line(item)}</li>`)}</ul>`;
    case "numbers":
      return html`<ol start=${block.start}>${block.items.map((item) => html`<li>${line(item)}</li>`)}</ol>`;
    case "quote":
      return html`<blockquote>${line(block.items.join(" "))}</blockquote>`;
    case "table":
      return table(block.items, line);
    default:
      return html`<p>${block.items.map((item, index) => html`${index > 0 && html`<br />`}${line(item)}`)}</p>`;
  }
}

function table(rows, line) {
  const cells = rows
    .map((row) => row.trim().slice(1, -1).split("|").map((cell) => cell.trim()))
    .filter((row) => !row.every((cell) => /^:?-+:?$/.test(cell)));
  const [head, ...body] = cells;
  return html`<div class="table-box"><table>
    <thead><tr>${head.map((cell) => html`<th>${line(cell)}</th>`)}</tr></thead>
    <tbody>${body.map((row) => html`<tr>${row.map((cell) => html`<td>${line(cell)}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}

function inline(text, cite) {
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    const [whole, label, code, bold, italic, title, address] = found;
    parts.push(text.slice(at, found.index));
    if (label) parts.push(cite(Number(label)));
    else if (code) parts.push(html`<code>${code}</code>`);
    else if (bold) parts.push(html`<strong>${inline(bold, cite)}</strong>`);
    else if (italic) parts.push(html`<em>${inline(italic, cite)}</em>`);
    else parts.push(html`<a href=${address} target="_blank" rel="noreferrer noopener">${title}</a>`);
    at = found.index + whole.length;
  }
  parts.push(text.slice(at));
  return parts;
}
