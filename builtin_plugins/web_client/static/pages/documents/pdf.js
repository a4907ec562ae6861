/** Pages of a PDF, drawn by PDF.js in this browser; a passage is found among the page's words and marked. */

import { GlobalWorkerOptions, getDocument } from "../../vendor/pdf.js";
import { t } from "../../lib/words.js";

GlobalWorkerOptions.workerSrc = new URL("../../vendor/pdf.worker.js", import.meta.url).href;

const SHARPEST = 2;

/** {pages, draw(number, canvas, marks, {texts, isNamed}), close}. */
export async function openPdf(data) {
  const task = getDocument({ data, isEvalSupported: false, enableXfa: false });
  const file = await task.promise.catch(() => {
    throw new Error(t("This PDF can’t be shown here. Download it, or read its text."));
  });
  let drawing = null;
  let latest = 0;
  return {
    pages: file.numPages,
    close: () => task.destroy(),
    async draw(number, canvas, marks, wanted) {
      latest += 1;
      const mine = latest;
      drawing?.cancel();
      await drawing?.promise.catch(() => {});
      const page = await file.getPage(Math.min(Math.max(number, 1), file.numPages));
      const width = canvas.parentElement.clientWidth;
      if (!width || mine !== latest) return;
      const scale = width / page.getViewport({ scale: 1 }).width;
      const viewport = page.getViewport({ scale });
      const sharpness = Math.min(devicePixelRatio || 1, SHARPEST);
      canvas.width = Math.floor(viewport.width * sharpness);
      canvas.height = Math.floor(viewport.height * sharpness);
      canvas.style.height = `${viewport.height}px`;
      drawing = page.render({ canvas, viewport, transform: [sharpness, 0, 0, sharpness, 0, 0] });
      await drawing.promise.catch((error) => {
        if (error.name !== "RenderingCancelledException") throw error;
      });
      const boxes = mine === latest ? await boxesOf(page, viewport, wanted) : [];
      if (mine !== latest) return; // a later call draws the marks
      marks.replaceChildren(...boxes);
      boxes[0]?.scrollIntoView({ block: "center" });
    },
  };
}

const ENDS = 40; // letters of a passage used to find its beginning and its end
const BEGINNING = 20; // letters of a page used to check whether the passage continues there

const bare = (text) => text.normalize("NFKC").replace(/[\s\u00ad]+/g, "").toLowerCase();

/** A mark over each piece of the page that the texts cover; `isNamed` if they must be on the page. */
async function boxesOf(page, viewport, { texts, isNamed }) {
  const wanted = texts.map(bare).filter(Boolean);
  if (!wanted.length) return [];
  const { items } = await page.getTextContent();
  return wanted.flatMap((text) => boxesOfText(items, viewport, text, isNamed));
}

/** The marks of one text, compared without spaces. */
function boxesOfText(items, viewport, wanted, isNamed) {
  const texts = items.map((item) => bare(item.str ?? ""));
  const whole = texts.join("");
  const goesOn = wanted.includes(whole.slice(0, BEGINNING));
  const begins = whole.includes(wanted.slice(0, ENDS));
  if (!isNamed && !goesOn && !begins) return [];
  let from = whole.indexOf(wanted);
  let to = from + wanted.length;
  if (from < 0) [from, to] = byItsEnds(whole, wanted, goesOn);
  const boxes = [];
  let at = 0;
  for (const [index, text] of texts.entries()) {
    if (text && at < to && at + text.length > from) {
      const [begin, end] = [Math.max(0, from - at), Math.min(text.length, to - at)].map((place) => place / text.length);
      boxes.push(box(items[index], viewport, begin, end));
    }
    at += text.length;
  }
  return boxes;
}

/** A passage that crosses pages, or whose middle differs: found by its first and last words. */
function byItsEnds(whole, wanted, goesOn) {
  const length = Math.min(ENDS, Math.floor(wanted.length / 2));
  const from = whole.indexOf(wanted.slice(0, length));
  const end = whole.lastIndexOf(wanted.slice(-length));
  if (from < 0 && end < 0) return [0, goesOn ? whole.length : 0];
  return [from < 0 ? 0 : from, end < 0 ? whole.length : end + length];
}

/** A mark over a piece of a line: its part from `begin` to `end`, each from 0 to 1, as if all letters were equally wide. */
function box(item, viewport, begin, end) {
  const [, , , , x, y] = item.transform;
  const [left, bottom] = viewport.convertToViewportPoint(x + item.width * begin, y);
  const element = document.createElement("span");
  const height = item.height * viewport.scale;
  Object.assign(element.style, {
    left: `${(left / viewport.width) * 100}%`,
    top: `${((bottom - height) / viewport.height) * 100}%`,
    width: `${((item.width * (end - begin) * viewport.scale) / viewport.width) * 100}%`,
    height: `${((height * 1.25) / viewport.height) * 100}%`,
  });
  return element;
}
