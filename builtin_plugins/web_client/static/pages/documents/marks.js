/** What is marked of a document: the sentences that are quoted, else the whole passage. */

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
  const pieces = [];
  let at = 0;
  for (const { from, to } of marks) {
    pieces.push({ text: text.slice(at, Math.max(at, from - begin)), isMarked: false }, { text: text.slice(Math.max(at, from - begin), to - begin), isMarked: true });
    at = Math.max(at, to - begin);
  }
  return [...pieces, { text: text.slice(at), isMarked: false }].filter((piece) => piece.text);
}

/** The marked texts of a passage. */
export function markedTexts(passage) {
  if (!passage.text || !passage.quotes?.length) return [passage.text ?? ""];
  const marked = cutAtMarks(passage.text, passage.char_start, marksOf(passage)).filter((piece) => piece.isMarked);
  return marked.length ? marked.map((piece) => piece.text) : [passage.text];
}
