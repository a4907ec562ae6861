/** What is marked of a document: the sentences that are quoted, else the whole passage. */

const PAIR = /[\uD800-\uDFFF]/;

/** A text by its characters as the API counts them, of which some are two for JavaScript: {count, part(from, to)}. */
export function charactersOf(text) {
  if (!PAIR.test(text)) return { count: text.length, part: (from, to) => text.slice(from, to) };
  const all = [...text];
  return { count: all.length, part: (from, to) => all.slice(from, to).join("") };
}

/** The places of a passage's marks, in characters of the document: [{from, to}], first to last, none twice. */
export function marksOf({ quotes, char_start, char_end }) {
  if (!quotes?.length) return [{ from: char_start, to: char_end }];
  const marks = [];
  for (const { char_start: from, char_end: to } of quotes.toSorted((one, other) => one.char_start - other.char_start)) {
    const last = marks.at(-1);
    if (last && from <= last.to) last.to = Math.max(last.to, to);
    else marks.push({ from, to });
  }
  return marks;
}

/** A text that begins at `begin` of its document, cut at its marks: [{text, isMarked}]. */
export function cutAtMarks(text, begin, marks) {
  const { part } = charactersOf(text);
  const pieces = [];
  let at = 0;
  for (const { from, to } of marks) {
    pieces.push({ text: part(at, Math.max(at, from - begin)), isMarked: false }, { text: part(Math.max(at, from - begin), Math.max(at, to - begin)), isMarked: true });
    at = Math.max(at, to - begin);
  }
  return [...pieces, { text: part(at), isMarked: false }].filter((piece) => piece.text);
}

/** The marked texts of a passage. */
export function markedTexts(passage) {
  if (!passage.text || !passage.quotes?.length) return [passage.text ?? ""];
  const marked = cutAtMarks(passage.text, passage.char_start, marksOf(passage)).filter((piece) => piece.isMarked);
  return marked.length ? marked.map((piece) => piece.text) : [passage.text];
}
