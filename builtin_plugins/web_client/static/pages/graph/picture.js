/** The picture of a collection's entities: dragging moves it, the wheel and the buttons zoom, a click chooses. */

import { html, useEffect, useRef } from "../../lib/html.js";
import { plural, t } from "../../lib/words.js";
import { Button } from "../../parts/basics.js";
import { layoutOf } from "./layout.js";

const STEPS_A_FRAME = 3;
const MILLISECONDS = 5; // milliseconds after which no further step is begun in a frame
const NEAR = 14; // pixels around an entity that count as a click on it
const LABELS = 60;
const HALF_LABEL = 60; // pixels beside an entity for half of its name
const TOKENS = { PERSON: "--accent", ORG: "--good", GPE: "--warn", LOC: "--warn", FAC: "--warn", DATE: "--text-3" };

const radiusOf = (entity) => Math.min(14, 3 + 1.6 * Math.sqrt(entity.documents));

export function Picture({ network, chosen, onChoose }) {
  const canvas = useRef(null);
  const view = useRef(null);
  const places = useRef(new Map()); // by name: who is drawn already stays about there
  useEffect(() => {
    view.current = viewOf(canvas.current, network, onChoose, places.current);
    return () => {
      places.current = view.current.places();
      view.current.stop();
    };
  }, [network]);
  useEffect(() => view.current?.choose(chosen), [chosen, network]);
  const zoom = (factor) => view.current.zoom(factor);
  return html`<div class="graph-box">
    <canvas ref=${canvas} class="graph" role="img" aria-label=${plural(network.entities.length, "Picture of one entity", "Picture of {n} entities and what connects them")}></canvas>
    <div class="graph-tools">
      <${Button} small icon="plus" aria-label=${t("Zoom in")} onClick=${() => zoom(1.4)} />
      <${Button} small icon="minus" aria-label=${t("Zoom out")} onClick=${() => zoom(1 / 1.4)} />
    </div>
  </div>`;
}

/** The animation on a canvas, outside the components: {stop, choose, zoom, places}. */
function viewOf(canvas, { entities, connections }, onChoose, places) {
  const layout = layoutOf(entities.length, connections, (i) => places.get(entities[i].text));
  const place = { x: 0, y: 0, scale: 1, moved: false };
  let chosen = -1;
  let waiting = 0;
  const later = () => {
    waiting ||= requestAnimationFrame(frame);
  };
  function frame() {
    waiting = 0;
    const begun = performance.now();
    let moving = layout.step();
    for (let i = 1; moving && i < STEPS_A_FRAME && performance.now() - begun < MILLISECONDS; i += 1) moving = layout.step();
    if (moving && !place.moved) fit(canvas, layout, place);
    draw(canvas, { entities, connections, layout, place, chosen });
    if (moving) later();
  }
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [(event.clientX - box.left - box.width / 2 - place.x) / place.scale, (event.clientY - box.top - box.height / 2 - place.y) / place.scale];
  };
  const handlers = movements({ place, at, later, choose: (x, y) => pick(entities, layout, place, x, y, onChoose) });
  for (const [name, handler] of Object.entries(handlers)) canvas.addEventListener(name, handler, { passive: false });
  const sizes = new ResizeObserver(later);
  const schemes = matchMedia("(prefers-color-scheme: dark)");
  sizes.observe(canvas);
  schemes.addEventListener("change", later);
  later();
  return {
    places: () => new Map(entities.map(({ text }, i) => [text, [layout.x[i], layout.y[i]]])),
    stop() {
      cancelAnimationFrame(waiting);
      sizes.disconnect();
      schemes.removeEventListener("change", later);
      for (const [name, handler] of Object.entries(handlers)) canvas.removeEventListener(name, handler);
    },
    choose(text) {
      chosen = entities.findIndex((entity) => entity.text === text);
      later();
    },
    zoom(factor) {
      zoomTo(place, factor, 0, 0);
      later();
    },
  };
}

function zoomTo(place, factor, x, y) {
  const scale = Math.min(8, Math.max(0.05, place.scale * factor));
  place.x -= x * (scale - place.scale);
  place.y -= y * (scale - place.scale);
  Object.assign(place, { scale, moved: true });
}

function movements({ place, at, later, choose }) {
  let from = null;
  return {
    pointerdown(event) {
      from = { x: event.clientX, y: event.clientY, dragged: false };
      event.target.setPointerCapture(event.pointerId);
    },
    pointermove(event) {
      if (!from) return;
      const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
      if (!from.dragged && Math.hypot(dx, dy) < 4) return;
      place.x += dx;
      place.y += dy;
      place.moved = true;
      from = { x: event.clientX, y: event.clientY, dragged: true };
      later();
    },
    pointerup(event) {
      if (from && !from.dragged) choose(...at(event));
      from = null;
    },
    pointercancel() {
      from = null;
    },
    wheel(event) {
      event.preventDefault();
      zoomTo(place, Math.exp(-event.deltaY * 0.0015), ...at(event));
      later();
    },
  };
}

function pick(entities, { x, y }, place, px, py, onChoose) {
  let [best, nearest] = [-1, Infinity];
  for (let i = 0; i < entities.length; i += 1) {
    const distance = Math.hypot(x[i] - px, y[i] - py);
    if (distance < nearest) [best, nearest] = [i, distance];
  }
  if (best >= 0 && nearest * place.scale <= NEAR + radiusOf(entities[best]) * place.scale) onChoose(entities[best].text);
}

function fit(canvas, { x, y }, place) {
  let [wide, high] = [60, 60];
  for (let i = 0; i < x.length; i += 1) {
    wide = Math.max(wide, Math.abs(x[i]));
    high = Math.max(high, Math.abs(y[i]));
  }
  place.scale = Math.min(2, (canvas.clientWidth / 2 - HALF_LABEL) / wide, (canvas.clientHeight * 0.46) / high);
}

function draw(canvas, { entities, connections, layout: { x, y }, place, chosen }) {
  const ratio = devicePixelRatio;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  }
  const styles = getComputedStyle(canvas);
  const color = (token) => styles.getPropertyValue(token);
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  const toX = (i) => width / 2 + place.x + x[i] * place.scale;
  const toY = (i) => height / 2 + place.y + y[i] * place.scale;
  const near = new Set([chosen]);
  const lines = { plain: new Path2D(), strong: new Path2D() };
  for (const { source, target } of connections) {
    const isNear = chosen >= 0 && (source === chosen || target === chosen);
    if (isNear) near.add(source).add(target);
    const line = isNear ? lines.strong : lines.plain;
    line.moveTo(toX(source), toY(source));
    line.lineTo(toX(target), toY(target));
  }
  pen.strokeStyle = color("--line-2");
  pen.lineWidth = 0.7;
  pen.stroke(lines.plain);
  pen.strokeStyle = color("--accent");
  pen.lineWidth = 1.6;
  pen.stroke(lines.strong);
  for (const token of new Set([...Object.values(TOKENS), "--text-2"])) {
    pen.fillStyle = color(token);
    pen.beginPath();
    for (let i = 0; i < entities.length; i += 1) {
      if ((TOKENS[entities[i].label] ?? "--text-2") !== token) continue;
      const radius = radiusOf(entities[i]) * Math.min(1.5, Math.max(0.5, place.scale)) * (i === chosen ? 1.5 : 1);
      pen.moveTo(toX(i) + radius, toY(i));
      pen.arc(toX(i), toY(i), radius, 0, 7);
    }
    pen.fill();
  }
  pen.font = `12px ${styles.fontFamily}`;
  pen.textAlign = "center";
  pen.fillStyle = color("--text");
  pen.strokeStyle = color("--ground");
  pen.lineWidth = 3;
  const shown = Math.round(LABELS * Math.max(1, place.scale));
  for (let i = 0; i < entities.length; i += 1) {
    if (i >= shown && !near.has(i)) continue;
    const text = entities[i].text.length > 32 ? `${entities[i].text.slice(0, 31)}…` : entities[i].text;
    pen.strokeText(text, toX(i), toY(i) - 10);
    pen.fillText(text, toX(i), toY(i) - 10);
  }
}
