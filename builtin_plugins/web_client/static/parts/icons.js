/** Icons as strokes on a 24-unit grid; they have the text's color and are hidden from screen readers. */

import { html } from "../lib/html.js";

const STROKES = {
  ask: "M21 11.5a8.4 8.4 0 0 1-12.2 7.5L3 21l2-5.8A8.4 8.4 0 1 1 21 11.5Z",
  documents: "M14 3H7a2 2 0 0 0-2 2v14a2 2 0 0 0 2 2h10a2 2 0 0 0 2-2V8Zm0 0v5h5M9 13h6M9 17h4",
  pipelines: "M4 6h9m4 0h3M4 12h3m4 0h9M4 18h9m4 0h3M15 4v4M9 10v4M15 16v4",
  tools: "M14.7 6.3a4 4 0 0 0 5 5L21 12.6a6 6 0 0 1-7.6 1.3L7 20.3a2.3 2.3 0 0 1-3.3-3.3l6.4-6.4A6 6 0 0 1 11.4 3Z",
  plugins: "M9 3v4M15 3v4M6 7h12v5a6 6 0 0 1-12 0ZM12 18v3",
  people: "M9 11a4 4 0 1 0 0-8 4 4 0 0 0 0 8Zm-7 10a7 7 0 0 1 14 0M16 3.3a4 4 0 0 1 0 7.4M18.5 14.5A7 7 0 0 1 22 21",
  keys: "M15.5 8.5 21 3m-2.5 2.5L21 8m-5.5.500L18 11M14 13a5 5 0 1 1-3.5-3.5Z",
  audit: "M9 5h11M9 12h11M9 19h11M4 5h.01M4 12h.01M4 19h.01",
  operations: "M3 12h4l3-8 4 16 3-8h4",
  account: "M12 12a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9Zm-8 9a8 8 0 0 1 16 0",
  evaluation: "M4 20V10m5.300 10V4m5.300 16v-8M20 20V7",
  graph: "M6 8a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5Zm12 3a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5ZM9 21a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5ZM8.300 6.300l7.300 1.700M6.500 8l1.800 8m2.300.500 6-6",
  minus: "M5 12h14",
  plus: "M12 5v14M5 12h14",
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14Zm5-2 5 5",
  send: "M12 19V5m-6 6 6-6 6 6",
  stop: "M7 7h10v10H7Z",
  close: "M6 6l12 12M18 6 6 18",
  menu: "M4 6h16M4 12h16M4 18h16",
  more: "M12 6.7a.7.7 0 1 0 0-1.4.7.7 0 0 0 0 1.4Zm0 6a.7.7 0 1 0 0-1.4.7.7 0 0 0 0 1.4Zm0 6a.7.7 0 1 0 0-1.4.7.7 0 0 0 0 1.4Z",
  check: "m5 12.5 4.5 4.5L19 7.5",
  alert: "M12 9v4m0 3.5h.01M10.3 4 2.6 17.5A2 2 0 0 0 4.3 20.5h15.4a2 2 0 0 0 1.7-3L13.7 4a2 2 0 0 0-3.4 0Z",
  info: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18Zm0-10v5m0-8.5h.01",
  trash: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5M14 11v5",
  edit: "M4 20h4L19 9l-4-4L4 16Zm9-13 4 4",
  upload: "M12 16V4m-5 5 5-5 5 5M4 16v3a2 2 0 0 0 2 2h12a2 2 0 0 0 2-2v-3",
  download: "M12 4v12m-5-5 5 5 5-5M4 16v3a2 2 0 0 0 2 2h12a2 2 0 0 0 2-2v-3",
  copy: "M9 9h11v11H9ZM5 15H4V4h11v1",
  retry: "M20 11a8 8 0 1 0-2.3 5.7M20 4v7h-7",
  back: "M15 6l-6 6 6 6",
  next: "M9 6l6 6-6 6",
  down: "M6 9l6 6 6-6",
  up: "M6 15l6-6 6 6",
  lock: "M6 11h12v9H6Zm2 0V8a4 4 0 0 1 8 0v3",
  globe: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM3 12h18M12 3a14 14 0 0 1 0 18 14 14 0 0 1 0-18Z",
  organization: "M4 21V5l8-2v18M12 9h8v12M3 21h18M7.5 8h.01M7.5 12h.01M7.5 16h.01M16 13h.01M16 17h.01",
  star: "m12 3 2.8 5.8 6.2.900-4.5 4.4 1 6.3-5.5-3-5.5 3 1-6.3L3 9.7l6.2-.900Z",
  share: "M16 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM6 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6Zm10 7a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM8.6 10.5l4.9-3M8.6 13.5l4.9 3",
  up_thumb: "M7 11v9H4v-9Zm0 0 4-8a2.5 2.5 0 0 1 2.5 2.5V9H19a2 2 0 0 1 2 2.3l-1.2 7A2 2 0 0 1 17.8 20H7",
  down_thumb: "M7 13V4H4v9Zm0 0 4 8a2.5 2.5 0 0 0 2.5-2.5V15H19a2 2 0 0 0 2-2.3l-1.2-7A2 2 0 0 0 17.8 4H7",
  settings: "M12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM12 2v3M12 19v3M2 12h3M19 12h3M4.9 4.9 7 7M17 17l2.1 2.1M19.1 4.9 17 7M7 17l-2.1 2.1",
  sign_out: "M15 4h3a2 2 0 0 1 2 2v12a2 2 0 0 1-2 2h-3M10 8l-4 4 4 4M6 12h10",
  microphone: "M12 15a3.5 3.5 0 0 0 3.5-3.5v-5a3.5 3.5 0 0 0-7 0v5A3.5 3.5 0 0 0 12 15Zm-7-4a7 7 0 0 0 14 0M12 18v3",
  speaker: "M4 9v6h4l5 4V5L8 9ZM16.5 8.5a5 5 0 0 1 0 7M19 6a8.5 8.5 0 0 1 0 12",
};

export function Icon({ name, size = 18 }) {
  return html`<svg class="icon" width=${size} height=${size} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    <path d=${STROKES[name]} />
  </svg>`;
}
