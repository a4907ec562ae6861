/**
 * Formulas in LaTeX, as MathML, which browsers draw themselves. What makes them is loaded with the first one; until then,
 * and if it can't read a formula, its source is shown.
 */

import { html, signal, useEffect, useLayoutEffect, useRef } from "../lib/html.js";
import { whenThere } from "../lib/http.js";

const LONGEST = 4_000; // characters of one formula
/** A definition of a few letters can stand for a million, which browsers take minutes to lay out. */
const DEFINITION = /\\(?:[egx]?def|(?:re)?newcommand|providecommand|(?:future)?let)(?![A-Za-z@])/;
/** Twenty lines in one another: browsers take seconds to lay out hundreds. */
const TOO_DEEP = ":is(menclose, .menclose) ".repeat(20);
/** Nothing but drawing: no links, pictures, classes or styles of its own. */
const LIMITS = { trust: false, maxExpand: 500, maxSize: [10, 10], throwOnError: true };

const maker = signal(null);
let wanted = false;

function load() {
  if (wanted) return;
  wanted = true;
  whenThere(() => import("../vendor/temml.js")).then(
    (module) => {
      maker.value = module.temml;
    },
    () => {
      wanted = false;
    },
  );
}

/** Draw it in `box`; returns whether it could be read. A very deep one ends in an overflow of the stack. */
function draw(text, box, isBlock) {
  try {
    maker.value.render(text, box, { ...LIMITS, displayMode: isBlock });
    if (box.querySelector(TOO_DEEP)) throw new RangeError("too deep");
  } catch {
    box.textContent = "";
    return false;
  }
  // Names that it gives to its parts could be taken for those of the page.
  for (const part of box.querySelectorAll("[id], [href]")) {
    part.removeAttribute("id");
    part.removeAttribute("href");
  }
  // The stylesheet draws the lines, as not every browser does.
  for (const part of box.querySelectorAll("menclose")) part.setAttribute("notation", "");
  return true;
}

export function Formula({ text, source, isBlock }) {
  const box = useRef(null);
  const shown = useRef(null);
  const ready = maker.value !== null && text.length <= LONGEST && !DEFINITION.test(text);
  useEffect(load, []);
  useLayoutEffect(() => {
    if (!ready) return;
    box.current.hidden = !draw(text, box.current, isBlock);
    shown.current.hidden = !box.current.hidden;
  }, [text, ready, isBlock]);
  return html`<span class=${isBlock ? "formula block" : "formula"} dir="ltr"><span ref=${box} hidden></span><code ref=${shown}>${source}</code></span>`;
}
