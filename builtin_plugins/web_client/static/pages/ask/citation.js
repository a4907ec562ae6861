/** A citation: its passage on hover or focus, its place in the document on a click. */

import { html, useId, useState } from "../../lib/html.js";
import { t, whereIs } from "../../lib/words.js";
import { markedTexts } from "../documents/marks.js";

const EDGE = 8;
const LONGEST = 480;

const shortened = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST)} …` : text);

export function Citation({ source, label, onShow }) {
  const [place, setPlace] = useState(null);
  const id = useId();
  const open = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    const width = Math.min(380, innerWidth - 2 * EDGE);
    const left = Math.max(EDGE, Math.min(box.left - 24, innerWidth - width - EDGE));
    const below = box.bottom < innerHeight * 0.55;
    setPlace({ left: `${left}px`, width: `${width}px`, ...(below ? { top: `${box.bottom + 6}px` } : { bottom: `${innerHeight - box.top + 6}px` }) });
  };
  const close = () => setPlace(null);
  return html`<span class="citation" onMouseEnter=${open} onMouseLeave=${close}>
    <button type="button" aria-label=${t("Source {n}: {name}", { n: label, name: source.source })} aria-describedby=${place ? id : undefined}
      onFocus=${open} onBlur=${close} onClick=${onShow} onKeyDown=${(event) => event.key === "Escape" && close()}>${label}</button>
    ${
      place &&
      html`<span class="passage-card" role="tooltip" id=${id} style=${place}>
        <strong class="clip">${[source.source, whereIs(source)].filter(Boolean).join(" · ")}</strong>
        <span>${shortened(markedTexts(source).join(" … ")) || t("Click to read it in context.")}</span>
      </span>`
    }
  </span>`;
}
