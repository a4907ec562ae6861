/** A document as it looks, in a frame where no script runs and nothing is loaded; a passage is found and marked. */

/** The frame's empty page, whose policy allows embedded pictures and styles only. */
export const FRAME = new URL("../../preview.html", import.meta.url).href;

const ENDS = 40; // letters by which a passage is found whose middle differs
const SHORTEST = 4; // letters of a line that is looked for by itself
const MOST_ROWS = 50;
const NOT_WORDS = /[^\p{L}\p{N}]+/gu;
const ACCENT = /\p{M}/u;
const NUMBERED = /^\s*(?:\d+[.)]|[a-z][.)])\s+/i;
const ADDRESS = /\]\([^)\s]*\)/g; // of a link in Markdown

/**
 * The letters and digits of a text, the same as those of its characters one by one: spaces, accents (one character or
 * two), marks of lists and of Markdown differ from what is shown.
 */
const bare = (text) => text.normalize("NFKD").replace(NOT_WORDS, "").toLowerCase().replaceAll("ς", "σ");

/** Show a page in the frame with the texts marked, as far as they are there; the first one in sight, else the top. */
export function show(frame, page, texts) {
  const shown = frame.contentDocument;
  shown.documentElement.innerHTML = page;
  const marks = texts.flatMap((text) => markText(shown, text.replace(ADDRESS, "]")));
  marks[0]?.scrollIntoView({ block: "center" });
}

function markText(shown, text) {
  const letters = lettersOf(shown);
  const places = placesOf(letters.text, text);
  if (places.length) return places.toReversed().flatMap(([from, to]) => markPlace(letters, from, to)).toReversed();
  return rowsWith(shown, bare(text)).flatMap((row) => {
    const own = lettersOf(shown, row);
    return markPlace(own, 0, own.text.length);
  });
}

/** The letters that are shown, and in which text node they are: {text, nodes: [{node, from, to}]}. */
function lettersOf(shown, root = shown.body) {
  const walker = shown.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const parts = [];
  const nodes = [];
  let from = 0;
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const letters = bare(node.data);
    if (!letters || node.parentElement.closest("style, .sheet th")) continue;
    const to = from + letters.length;
    parts.push(letters);
    nodes.push({ node, from, to });
    from = to;
  }
  return { text: parts.join(""), nodes };
}

/** Where some of a text's letters are in it, with the accents of the last: [start, end]. */
function spanOf(text, from, to) {
  let [letters, offset, start, end] = [0, 0, -1, 0];
  for (const char of text) {
    const size = bare(char).length;
    if (size && letters >= to) break;
    letters += size;
    offset += char.length;
    if (size && letters > from) [start, end] = [start < 0 ? offset - char.length : start, offset];
    else if (start >= 0 && ACCENT.test(char) && end === offset - char.length) end = offset;
  }
  return [start, end];
}

/** Where a text is among the letters: as a whole, by its ends, or line by line. */
function placesOf(letters, text) {
  const wanted = bare(text);
  if (!wanted) return [];
  const at = letters.indexOf(wanted);
  if (at >= 0) return [[at, at + wanted.length]];
  const length = Math.min(ENDS, Math.floor(wanted.length / 2));
  const begin = letters.indexOf(wanted.slice(0, length));
  const end = begin < 0 ? -1 : letters.indexOf(wanted.slice(-length), begin);
  if (length === ENDS && end >= 0 && end - begin < 2 * wanted.length) return [[begin, end + length]];
  return linesAmong(letters, text);
}

function linesAmong(letters, text) {
  const places = [];
  let after = 0;
  for (const line of text.split("\n")) {
    const wanted = [bare(line), bare(line.replace(NUMBERED, ""))].find((one) => one.length >= SHORTEST && letters.includes(one, after));
    if (!wanted) continue;
    const at = letters.indexOf(wanted, after);
    after = at + wanted.length;
    places.push([at, after]);
  }
  return places;
}

/** The rows of tables whose cells are all in the text: it may name the columns in each row. */
function rowsWith(shown, wanted) {
  const rows = [...shown.querySelectorAll("tr")].filter((row) => {
    const cells = [...row.querySelectorAll("td")].map((cell) => bare(cell.textContent)).filter(Boolean);
    return cells.length > 1 && cells.join("").length >= SHORTEST && cells.every((cell) => wanted.includes(cell));
  });
  return rows.slice(0, MOST_ROWS);
}

/** Put marks around the letters from one place to another, in each text node that they are in. */
function markPlace({ nodes }, from, to) {
  return nodes.filter((one) => one.from < to && from < one.to).map(({ node, from: first }) => {
    const [start, end] = spanOf(node.data, from - first, to - first);
    const mark = node.ownerDocument.createElement("mark");
    const rest = node.splitText(start);
    rest.splitText(end - start);
    rest.replaceWith(mark);
    mark.append(rest);
    return mark;
  });
}
