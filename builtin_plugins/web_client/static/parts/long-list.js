/** A list of any length: only the rows near the screen are in the page, all of one height. */

import { html, useEffect, useRef, useState } from "../lib/html.js";

const BEYOND = 8; // rows kept above and below the visible ones
const AT_ONCE = 16; // new rows per frame: more would delay the next one

export function LongList({ items, keyOf, rowHeight, row, label }) {
  const box = useRef(null);
  const drawn = useRef([0, 0]);
  const [[first, last], setRange] = useState([0, AT_ONCE]);
  drawn.current = [first, last];
  useEffect(() => {
    let waiting = 0;
    const look = () => {
      waiting = 0;
      if (!box.current) return;
      const top = -box.current.getBoundingClientRect().top;
      const seen = within(items.length, Math.floor(top / rowHeight), Math.ceil((top + innerHeight) / rowHeight));
      const wanted = within(items.length, seen[0] - BEYOND, seen[1] + BEYOND);
      const next = towards(wanted, seen, drawn.current);
      if (!same(next, drawn.current)) setRange(next);
      if (!same(next, wanted)) later();
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
  const shown = items.slice(first, last);
  return html`<ul class="long-list" ref=${box} aria-label=${label} style=${{ height: `${items.length * rowHeight}px` }}>
    ${shown.map(
      (item, index) => html`<li key=${keyOf(item)} aria-setsize=${items.length} aria-posinset=${first + index + 1} style=${{ top: `${(first + index) * rowHeight}px`, height: `${rowHeight}px` }}>${row(item)}</li>`,
    )}
  </ul>`;
}

const same = (one, other) => one[0] === other[0] && one[1] === other[1];

function within(count, first, last) {
  const from = Math.min(count, Math.max(0, first));
  return [from, Math.max(from, Math.min(count, last))];
}

/** The rows of the next frame: visible ones first, then the ones beyond them. */
function towards(wanted, seen, was) {
  let first = Math.max(was[0], wanted[0]);
  let last = Math.min(was[1], wanted[1]);
  if (last <= seen[0] || first >= seen[1]) first = last = seen[0];
  let left = AT_ONCE;
  for (const [from, to] of [seen, wanted]) {
    const below = Math.min(left, Math.max(0, to - last));
    const above = Math.min(left - below, Math.max(0, first - from));
    [first, last, left] = [first - above, last + below, left - below - above];
  }
  return [first, last];
}
