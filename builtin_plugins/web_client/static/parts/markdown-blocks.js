/**
 * Markdown text as blocks, plain objects: {kind: "paragraph" | "heading" | "bullets" | "numbers" | "quote" | "code" |
 * "formula" | "table" | "rule", …}. Each line is read once per level, so that no text takes long.
 */

const FENCE = /^(\s*)(```+|~~~+)[^`]*$/;
const HEADING = /^\s{0,3}(#{1,6})\s+(.*)$/;
const ITEM = /^(\s*)(?:[-*+]|(\d{1,4})[.)])(\s+)(.*)$/;
const RULE = /^\s{0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const QUOTE = /^\s{0,3}>\s?(.*)$/;
const FORMULA = /^\s*(\$\$|\\\[)(.*)$/;
const DEEPEST = 8; // levels of lists; anything deeper is text

/** The blocks of a text. */
export const blocksOf = (text) => read(text.replace(/\r\n?/g, "\n").split("\n"), 0);

function read(lines, depth) {
  const found = [];
  let at = 0;
  const take = (block, next) => {
    found.push(block);
    at = next;
  };
  while (at < lines.length) {
    const line = lines[at];
    const heading = line.match(HEADING);
    if (!line.trim()) at += 1;
    else if (FENCE.test(line)) take(...code(lines, at));
    else if (heading) take({ kind: "heading", level: heading[1].length, text: heading[2].replace(/ #+$/, "") }, at + 1);
    else if (isFormula(lines, at)) take(...formula(lines, at));
    else if (RULE.test(line)) take({ kind: "rule" }, at + 1);
    else if (ITEM.test(line) && depth < DEEPEST) take(...list(lines, at, depth));
    else if (QUOTE.test(line)) take(...quote(lines, at));
    else if (isTable(lines, at)) take(...table(lines, at));
    else take(...paragraph(lines, at, depth));
  }
  return found;
}

const indentOf = (line) => line.length - line.trimStart().length;

const closes = (line, marks) => line.trimStart().startsWith(marks) && !line.trim().replaceAll(marks[0], "");

/** Code ends with the marks that it began with or, while it is still arriving, with the text. */
function code(lines, begin) {
  const [, indent, marks] = lines[begin].match(FENCE);
  let end = begin + 1;
  while (end < lines.length && !closes(lines[end], marks)) end += 1;
  const text = lines.slice(begin + 1, end).map((line) => line.slice(Math.min(indent.length, indentOf(line)))).join("\n");
  return [{ kind: "code", text }, end + 1];
}

/** The line in which the formula ends that begins in this one; -1 if the next one begins first. */
function endOfFormula(lines, begin) {
  const [, mark, rest] = lines[begin].match(FORMULA) ?? [];
  if (!mark) return -1;
  const close = mark === "$$" ? "$$" : "\\]";
  if (rest.trimEnd().endsWith(close)) return begin;
  if (rest.includes(close)) return -1;
  let end = begin + 1;
  while (end < lines.length && !lines[end].includes(close) && !FORMULA.test(lines[end])) end += 1;
  return lines[end]?.trimEnd().endsWith(close) ? end : -1;
}

const isFormula = (lines, at) => FORMULA.test(lines[at]) && endOfFormula(lines, at) >= 0;

function formula(lines, begin) {
  const end = endOfFormula(lines, begin);
  const source = lines.slice(begin, end + 1).join("\n").trim();
  return [{ kind: "formula", text: source.slice(2, -2).trim(), source }, end + 1];
}

/** Items of one kind, each with what is indented below it; numbering continues even after an empty line. */
function list(lines, begin, depth) {
  const [, indent, number] = lines[begin].match(ITEM);
  const kind = number ? "numbers" : "bullets";
  const items = [];
  let at = begin;
  let last = Number(number) - 1;
  let apart = false;
  while (at < lines.length) {
    const [, mine, order, , text] = lines[at].match(ITEM) ?? [];
    const goesOn = mine?.length === indent.length && Boolean(order) === Boolean(number) && !RULE.test(lines[at]);
    if (!goesOn || (apart && order && Number(order) !== last + 1)) break;
    last = Number(order);
    const end = endOfItem(lines, at, indent.length);
    const below = lines.slice(at + 1, end);
    const margin = Math.min(...below.filter((line) => line.trim()).map(indentOf).slice(0, 1));
    const inside = below.map((line) => line.slice(Math.min(margin, indentOf(line))));
    items.push(read([text, ...inside], depth + 1));
    at = end;
    while (at < lines.length && !lines[at].trim()) at += 1;
    apart = at > end;
  }
  return [{ kind, items, start: number && Number(number) }, at];
}

/** An item continues with lines that are indented further, text that follows directly, and the rest of its code. */
function endOfItem(lines, begin, indent) {
  let end = begin + 1;
  let marks = lines[begin].match(ITEM)[4].match(FENCE)?.[2];
  for (let at = end; at < lines.length; at += 1) {
    const line = lines[at];
    const isEmpty = !line.trim();
    if (!marks && !isEmpty && indentOf(line) <= indent && (end < at || begins(lines, at))) break;
    if (!isEmpty) end = at + 1;
    if (!marks) marks = line.match(FENCE)?.[2];
    else if (closes(line, marks)) marks = undefined;
  }
  return end;
}

const begins = (lines, at) => [FENCE, HEADING, RULE, ITEM, QUOTE].some((form) => form.test(lines[at])) || isFormula(lines, at) || isTable(lines, at);

function quote(lines, begin) {
  let end = begin;
  const items = [];
  for (; end < lines.length && QUOTE.test(lines[end]); end += 1) items.push(lines[end].match(QUOTE)[1]);
  return [{ kind: "quote", text: items.join(" ") }, end];
}

function paragraph(lines, begin, depth) {
  let end = begin + 1;
  while (end < lines.length && lines[end].trim() && (!begins(lines, end) || (depth >= DEEPEST && ITEM.test(lines[end])))) end += 1;
  return [{ kind: "paragraph", items: lines.slice(begin, end) }, end];
}

const isBarred = (line) => /^\s*\|.*\|\s*$/.test(line);
const isDelimiter = (line = "") => /^[\s|:-]+$/.test(line) && line.includes("|") && cellsOf(line).every((cell) => /^:?-+:?$/.test(cell));

/** A line between bars is a row; without bars, the line below decides. */
const isTable = (lines, at) => isBarred(lines[at]) || (lines[at].includes("|") && isDelimiter(lines[at + 1]));

function table(lines, begin) {
  let end = begin + 1;
  const isOpen = !isBarred(lines[begin]) || isDelimiter(lines[end]);
  while (end < lines.length && (isBarred(lines[end]) || (isOpen && lines[end].includes("|")))) end += 1;
  const rows = lines.slice(begin, end);
  const sides = (rows.find(isDelimiter) ? cellsOf(rows.find(isDelimiter)) : []).map((cell) => (/^-+:$/.test(cell) ? "right" : ""));
  const [head, ...body] = rows.filter((row) => !isDelimiter(row)).map(cellsOf);
  return [{ kind: "table", head: head ?? [], body, sides }, end];
}

/** A bar after a backslash is part of its cell. */
function cellsOf(row) {
  const inside = row.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "");
  return inside.split(/(?<!\\)\|/).map((cell) => cell.trim());
}
