/**
 * Positions of a picture's entities: connected ones attract each other like springs, all others keep apart.
 *
 * Repulsion ends at a distance and is looked up in a grid, so a step costs time in proportion to the entities.
 */

const REACH = 90; // beyond it, two entities don't affect each other
const LENGTH = 46; // the length of a connection at rest
const COOLING = 0.985;
const COLD = 0.02;

/** A layout of `count` entities and {source, target, weight} between them: {x, y, step}; `placed` has earlier places. */
export function layoutOf(count, connections, placed = () => undefined) {
  const [x, y, dx, dy] = Array.from({ length: 4 }, () => new Float32Array(count));
  for (let i = 0; i < count; i += 1) {
    // A sunflower: even, and the same for the same collection.
    const radius = 16 * Math.sqrt(i + 0.5);
    const angle = i * Math.PI * (3 - Math.sqrt(5));
    [x[i], y[i]] = placed(i) ?? [radius * Math.cos(angle), radius * Math.sin(angle)];
  }
  const strongest = Math.max(1, ...connections.map((one) => one.weight));
  const degree = new Uint16Array(count);
  for (const { source, target } of connections) {
    degree[source] += 1;
    degree[target] += 1;
  }
  let heat = 1;

  function step() {
    if (heat < COLD) return false;
    repel(x, y, dx, dy, heat);
    for (const { source, target, weight } of connections) {
      const [vx, vy] = [x[target] - x[source], y[target] - y[source]];
      const distance = Math.sqrt(vx * vx + vy * vy) || 1;
      const pull = (heat * 0.3 * (0.4 + 0.6 * (weight / strongest)) * (distance - LENGTH)) / distance;
      const share = degree[source] / (degree[source] + degree[target]);
      dx[source] += vx * pull * (1 - share);
      dy[source] += vy * pull * (1 - share);
      dx[target] -= vx * pull * share;
      dy[target] -= vy * pull * share;
    }
    for (let i = 0; i < count; i += 1) {
      dx[i] = (dx[i] - x[i] * 0.006 * heat) * 0.6;
      dy[i] = (dy[i] - y[i] * 0.006 * heat) * 0.6;
      x[i] += dx[i];
      y[i] += dy[i];
    }
    heat *= COOLING;
    return true;
  }
  return { x, y, step };
}

/** Each pair of neighboring cells once: a cell with itself, and with four of the eight around it. */
const COLUMN = 100_003;
const AHEAD = [0, 1, COLUMN - 1, COLUMN, COLUMN + 1];

function repel(x, y, dx, dy, heat) {
  const cells = new Map();
  for (let i = 0; i < x.length; i += 1) {
    const key = Math.floor(x[i] / REACH) * COLUMN + Math.floor(y[i] / REACH);
    const cell = cells.get(key);
    if (cell) cell.push(i);
    else cells.set(key, [i]);
  }
  for (const [key, mine] of cells) {
    for (const ahead of AHEAD) {
      const others = cells.get(key + ahead);
      if (!others) continue;
      for (let a = 0; a < mine.length; a += 1) {
        const i = mine[a];
        for (let b = ahead ? 0 : a + 1; b < others.length; b += 1) {
          const j = others[b];
          const vx = x[i] - x[j] || 0.1;
          const vy = y[i] - y[j];
          const squared = vx * vx + vy * vy; // Math.hypot costs ten times as much
          if (squared > REACH * REACH) continue;
          const push = (heat * 260) / ((squared + 60) * Math.sqrt(squared));
          dx[i] += vx * push;
          dy[i] += vy * push;
          dx[j] -= vx * push;
          dy[j] -= vy * push;
        }
      }
    }
  }
}
