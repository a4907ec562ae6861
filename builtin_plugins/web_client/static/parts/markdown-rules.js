/**
 * What answers have besides CommonMark and tables: formulas, [1] for a source, <br>; and what they may link to. These
 * are rules of markdown-it, which makes tokens of a text; no token holds HTML.
 */

/** \(…\) and \[…\]; $$…$$; and $…$ unless it may be money or a variable of a shell. */
const FORMULA = /\\\(([^\n]{1,1000}?)\\\)|\\\[([^\n]{1,1000}?)\\\]|\$\$([^$\n]+)\$\$|(?<![\p{L}\p{N}$\\])\$(?=[^\s$])([^$\n]*[^\s$\\])\$(?![\p{L}\p{N}$])/uy;
const BLOCK = /^(\$\$|\\\[)(.*)$/;
const LABEL = /\[(\d{1,3})\]/y;
const BREAK = /<br ?\/?>/y;
const DEFINITION = /^\[\d{1,3}\]:/;
const WEB = /^https?:\/\//i;
const SCHEMES = ["http:", "https:"];

/** A reader of Markdown, from the library's constructor. */
export function readerOf(MarkdownIt) {
  const reader = new MarkdownIt({ html: false, linkify: true });
  reader.validateLink = (address) => WEB.test(address);
  reader.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
  for (const scheme of ["ftp:", "mailto:", "//"]) reader.linkify.add(scheme, null);
  for (const scheme of SCHEMES) reader.linkify.add(scheme, { validate: addressLength });
  const paragraph = reader.block.ruler.getRules("").at(-1);
  const notes = (state, line, end, silent) => DEFINITION.test(lineOf(state, line)) && paragraph(state, line, end, silent);
  reader.block.ruler.before("fence", "formula", formulaBlock, { alt: ["paragraph", "reference", "blockquote", "list"] });
  reader.block.ruler.before("reference", "notes", notes);
  reader.inline.ruler.before("escape", "formula", formula);
  reader.inline.ruler.before("link", "citation", (state, silent) => !isLink(state) && citation(state, silent));
  reader.inline.ruler.after("image", "label", citation);
  reader.inline.ruler.before("autolink", "break", lineBreak);
  return reader;
}

/** How far an address goes; a source's label behind it is none of it. */
function addressLength(text, at, linkify) {
  const form = linkify.re.get_http_validator();
  form.lastIndex = at;
  const address = form.exec(text)?.[0] ?? "";
  const end = address.search(/\[\d{1,3}\]/);
  return end < 0 ? address.length : end;
}

/** What stands here in a line or a link's text, by an expression that looks nowhere else. */
function here(state, expression) {
  expression.lastIndex = state.pos;
  const found = expression.exec(state.src);
  return found && state.pos + found[0].length <= state.posMax ? found : null;
}

function push(state, silent, found, type, meta) {
  if (!silent) state.push(type, "", 0).meta = meta;
  state.pos += found[0].length;
  return true;
}

function formula(state, silent) {
  if (!"\\$".includes(state.src[state.pos])) return false;
  const found = here(state, FORMULA);
  if (!found) return false;
  const [source, round, square, double, single] = found;
  return push(state, silent, found, "formula", { text: round ?? square ?? double ?? single, source, isBlock: Boolean(square ?? double) });
}

/** [1] before a bracket may be a link's text; [1][2] are two sources. */
const isLink = (state) => /^\[\d{1,3}\]\(/.test(state.src.slice(state.pos, state.pos + 6));

/** What only looks for a link's end counts its brackets. */
function citation(state, silent) {
  const found = !silent && state.src[state.pos] === "[" && state.linkLevel === 0 && here(state, LABEL);
  return found ? push(state, silent, found, "citation", { label: Number(found[1]) }) : false;
}

function lineBreak(state, silent) {
  const found = state.src[state.pos] === "<" && here(state, BREAK);
  return found ? push(state, silent, found, "hardbreak") : false;
}

const lineOf = (state, line) => state.src.slice(state.bMarks[line] + state.tShift[line], state.eMarks[line]);

/** The line in which the formula ends that begins in this one; -1 if the next one begins first. */
function endOfFormula(state, begin, last) {
  const [, mark, rest] = lineOf(state, begin).match(BLOCK) ?? [];
  if (!mark) return -1;
  const close = mark === "$$" ? "$$" : "\\]";
  if (rest.trimEnd().endsWith(close)) return begin;
  if (rest.includes(close)) return -1;
  for (let line = begin + 1; line < last && state.sCount[line] >= state.blkIndent; line += 1) {
    const text = lineOf(state, line);
    if (text.includes(close)) return text.trimEnd().endsWith(close) ? line : -1;
    if (BLOCK.test(text)) return -1;
  }
  return -1;
}

/** A formula in lines of its own. */
function formulaBlock(state, begin, last, silent) {
  const end = endOfFormula(state, begin, last);
  if (end < 0) return false;
  if (silent) return true;
  const source = state.getLines(begin, end + 1, state.sCount[begin], false).trim();
  state.push("formula", "", 0).meta = { text: source.slice(2, -2).trim(), source, isBlock: true };
  state.line = end + 1;
  return true;
}
