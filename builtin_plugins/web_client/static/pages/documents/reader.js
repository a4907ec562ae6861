/** A document to read, with a passage marked in its place: the page of a PDF, what the file looks like, or the text. */

import { html, useEffect, useRef, useState } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { number, t } from "../../lib/words.js";
import { Button, Failure, Loaded, Notice, Skeleton } from "../../parts/basics.js";
import { cutAtMarks, markedTexts, marksOf } from "./marks.js";

const AROUND = 40_000; // characters shown before and after a passage in a very long text

const PREVIEWED = /^image\/(png|jpeg|gif|webp|bmp|tiff)$|^text\/(html|markdown|csv)$|^message\/rfc822$|ms-outlook$|mbox$|ms-(word|excel|powerpoint)|officedocument|opendocument\.(text|spreadsheet|presentation)|rtf$|epub/;

/** A document's views, the best first: [name, component]. */
function viewsOf(type) {
  const text = [t("Text"), Text];
  if (type === "application/pdf") return [[t("Page"), Pages], text];
  return PREVIEWED.test(type) ? [[type.startsWith("image/") ? t("Picture") : t("As it looks"), Preview], text] : [text];
}

/** `at` is the page to begin with; `onTurn` is called with each new page. */
export function Reader({ base, document, passage, at, onTurn }) {
  const views = viewsOf(document.content_type);
  const [chosen, setChosen] = useState(0);
  const [, View] = views[chosen] ?? views[0];
  return html`<div class="reader">
    ${views.length > 1 && html`<div class="row reader-modes">${views.map(([name], index) => html`<${Button} key=${name} small aria-pressed=${index === chosen} class=${index === chosen ? "pressed" : ""} onClick=${() => setChosen(index)}>${name}<//>`)}</div>`}
    <${View} base=${base} document=${document} passage=${passage} at=${at} onTurn=${onTurn} />
  </div>`;
}

/** The parsed text, joined from its passages, which overlap. */
function joined(passages) {
  let text = "";
  let start = passages[0]?.char_start ?? 0;
  const first = start;
  for (const { char_start: from, text: part } of passages) {
    const at = from - first;
    if (at > text.length) text += "\n\n".padEnd(at - text.length, " ").slice(0, at - text.length);
    text = text.slice(0, at) + part;
    start = from;
  }
  return { text, first, start };
}

function Text({ base, document, passage }) {
  const found = useResource(
    (signal) => everything(api.passages, { kb_id: base, document_id: document.document_id, signal }),
    [base, document.document_id],
  );
  const mark = useRef(null);
  useEffect(() => {
    mark.current?.scrollIntoView({ block: "center" });
  }, [found.data, passage?.char_start]);
  return html`<${Loaded} of=${found} lines=${8}>${(passages) => {
    if (!passages.length) return html`<p class="muted">${t("There is no text.")}</p>`;
    const { text, first } = joined(passages);
    const marks = passage ? marksOf(passage) : [];
    const begin = passage ? Math.max(0, marks[0].from - first - AROUND) : 0;
    const end = passage ? marks.at(-1).to - first + AROUND : AROUND * 5;
    const pieces = cutAtMarks(text.slice(begin, end), first + begin, marks);
    const marked = pieces.find((piece) => piece.isMarked);
    return html`<div class="document-text" tabindex="0" role="region" aria-label=${document.filename}>${begin > 0 && "… "}${pieces.map((piece) =>
      piece.isMarked ? html`<mark ref=${piece === marked ? mark : undefined}>${piece.text}</mark>` : piece.text,
    )}${end < text.length && " …"}</div>`;
  }}<//>`;
}

/** The texts to mark; an address says only where they are. */
async function textsOf(base, document, passage, signal) {
  if (!passage) return [];
  if (passage.text) return markedTexts(passage);
  const { text, first } = joined(await everything(api.passages, { kb_id: base, document_id: document.document_id, signal }));
  return [text.slice(Math.max(0, passage.char_start - first), passage.char_end - first)];
}

function Preview({ base, document, passage }) {
  const ids = { kb_id: base, document_id: document.document_id };
  const page = useResource(async (signal) => {
    const [frame, answer] = await Promise.all([import("./preview.js"), api.preview({ ...ids, signal })]);
    return { ...frame, text: await answer.text() };
  }, [base, document.document_id]);
  const texts = useResource((signal) => textsOf(base, document, passage, signal), [base, document.document_id, passage?.char_start, passage?.char_end]);
  const frame = useRef(null);
  const [ready, setReady] = useState(false);
  useEffect(() => {
    if (ready && page.data && (texts.data || texts.error)) page.data.show(frame.current, page.data.text, texts.data ?? []);
  }, [ready, page.data, texts.data, texts.error]);
  if (page.error?.code === "no_preview") return html`<${Notice} title=${page.error.message}>${page.error.said && html`<span lang="en">${page.error.said}</span>`}<//><${Text} base=${base} document=${document} passage=${passage} />`;
  if (page.error) return html`<${Failure} error=${page.error} onRetry=${page.reload} />`;
  if (!page.data) return html`<${Skeleton} lines=${10} />`;
  return html`<iframe class="preview" ref=${frame} sandbox="allow-same-origin" src=${page.data.FRAME} title=${document.filename} onLoad=${() => setReady(true)}></iframe>`;
}

function Pages({ base, document, passage, at, onTurn }) {
  const file = useResource(
    async (signal) => {
      const [{ openPdf }, answer] = await Promise.all([
        import("./pdf.js"),
        api.content({ kb_id: base, document_id: document.document_id, signal }),
      ]);
      return openPdf(await answer.arrayBuffer());
    },
    [base, document.document_id],
  );
  const [page, setPage] = useState(at ?? passage?.page ?? 1);
  const turn = (to) => {
    setPage(to);
    onTurn?.(to);
  };
  const [problem, setProblem] = useState(null);
  const canvas = useRef(null);
  const marks = useRef(null);
  useEffect(() => setPage(at ?? passage?.page ?? 1), [passage?.char_start, passage?.page]);
  useEffect(() => () => file.data?.close(), [file.data]);
  useEffect(() => {
    if (!file.data || !canvas.current) return undefined;
    const beyond = passage ? Math.max(passage.page - page, page - (passage.last_page ?? passage.page)) : 0;
    // The quote is on its page; the passage around it may begin on the previous page and end on the next.
    const wanted = { texts: passage && beyond <= 1 ? markedTexts(passage) : [], isNamed: beyond <= 0 };
    const draw = () => file.data.draw(page, canvas.current, marks.current, wanted).then(() => setProblem(null), setProblem);
    // It is also called once at the beginning.
    const observer = new ResizeObserver(draw);
    observer.observe(canvas.current.parentElement);
    return () => observer.disconnect();
  }, [file.data, page, passage]);
  if (file.error) return html`<${Failure} error=${file.error} onRetry=${file.reload} />`;
  if (!file.data) return html`<${Skeleton} lines=${10} />`;
  return html`<div class="pdf">
    <div class="row center">
      <${Button} small icon="back" aria-label=${t("Previous page")} disabled=${page <= 1} onClick=${() => turn(page - 1)} />
      <span class="muted" aria-live="polite">${t("Page {n} of {total}", { n: number(page), total: number(file.data.pages) })}</span>
      <${Button} small icon="next" aria-label=${t("Next page")} disabled=${page >= file.data.pages} onClick=${() => turn(page + 1)} />
    </div>
    <${Failure} error=${problem} />
    <div class="pdf-page"><canvas ref=${canvas} role="img" aria-label=${t("Page {n} of {total}", { n: page, total: file.data.pages })}></canvas><div class="pdf-marks" ref=${marks}></div></div>
  </div>`;
}
