/** A list of any length: only the rows near the screen are in the page, all of one height. */

import { html, useEffect, useRef, useState } from "../lib/html.js";

const BEYOND = 8; // rows kept above and below what is seen

export function LongList({ items, keyOf, rowHeight, row, label }) {
  const box = useRef(null);
  const [range, setRange] = useState([0, 24]);
  useEffect(() => {
    let waiting = 0;
    const look = () => {
      waiting = 0;
      if (!box.current) return;
      const top = -box.current.getBoundingClientRect().top;
      const first = Math.max(0, Math.floor(top / rowHeight) - BEYOND);
      const last = Math.min(items.length, Math.ceil((top + innerHeight) / rowHeight) + BEYOND);
      setRange((was) => (was[0] === first && was[1] === last ? was : [first, Math.max(last, first)]));
    };
    const later = () => {
      waiting ||= requestAnimationFrame(look);
    };
    look();
    addEventListener("scroll", later, { passive: true });
    addEventListener("resize", later);
    return () => {
      cancelAnimationFrame(waiting);
      removeEventListener("scroll", later);
      removeEventListener("resize", later);
    };
  }, [items.length, rowHeight]);
  const [first, last] = range;
  const shown = items.slice(first, last);
  return html`<ul class="long-list" ref=${box} aria-label=${label} style=${{ height: `${items.length * rowHeight}px` }}>
    ${shown.map(
      (item, index) => html`<li key=${keyOf(item)} aria-setsize=${items.length} aria-posinset=${first + index + 1} style=${{ top: `${(first + index) * rowHeight}px`, height: `${rowHeight}px` }}>${row(item)}</li>`,
    )}
  </ul>`;
}
