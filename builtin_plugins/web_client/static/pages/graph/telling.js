/** Which entities the picture shows: the most telling ones, more around those that are clicked; of some kinds only. */

const START = 30;
const MORE = 12;

/** What is a value, and no thing that others could be connected with. */
const VALUES = new Set(["DATE", "TIME", "MONEY", "PERCENT", "QUANTITY", "CARDINAL", "ORDINAL"]);
const LETTERS = /\p{L}[\p{L}\p{M}]/u;

/** Kinds of entities for people, in the order in which they are offered; the others are "Other". */
export const KINDS = {
  people: { title: "People", labels: ["PERSON", "NORP"] },
  organizations: { title: "Organizations", labels: ["ORG"] },
  places: { title: "Places", labels: ["GPE", "LOC", "FAC"] },
  works: { title: "Products and works", labels: ["PRODUCT", "WORK_OF_ART", "LAW", "LANGUAGE"] },
  events: { title: "Events", labels: ["EVENT"] },
  other: { title: "Other", labels: [] },
};

export const kindOfEntity = ({ label }) => Object.keys(KINDS).find((kind) => KINDS[kind].labels.includes(label)) ?? "other";

/** The network without values, and without names of a single letter: {entities, connections}, the most telling first. */
export function withoutValues(network) {
  const degree = new Map();
  const isThing = network.entities.map(({ label, text }) => !VALUES.has(label) && LETTERS.test(text));
  for (const { source, target } of network.connections) {
    if (!isThing[source] || !isThing[target]) continue;
    degree.set(source, (degree.get(source) ?? 0) + 1);
    degree.set(target, (degree.get(target) ?? 0) + 1);
  }
  const worth = (at) => network.entities[at].documents * (1 + Math.log2(1 + (degree.get(at) ?? 0)));
  const order = [...network.entities.keys()].filter((at) => isThing[at]).sort((one, other) => worth(other) - worth(one) || one - other);
  return part(network, order);
}

/** The part to draw: `opened` are the names whose neighbors are drawn, too; `kinds` the only ones drawn, all if empty. */
export function telling(network, opened, kinds) {
  const isWanted = network.entities.map((entity) => !kinds.length || kinds.includes(kindOfEntity(entity)));
  const shown = new Set([...network.entities.keys()].filter((at) => isWanted[at]).slice(0, START));
  const places = new Map(network.entities.map((entity, at) => [entity.text, at]));
  for (const name of opened) {
    const at = places.get(name);
    if (at === undefined) continue;
    shown.add(at);
    const near = neighbors(network.connections, at).filter((other) => isWanted[other] && !shown.has(other));
    for (const other of near.slice(0, MORE)) shown.add(other);
  }
  return part(network, [...shown]);
}

/** The strongest connected first. */
const neighbors = (connections, at) =>
  connections
    .filter(({ source, target }) => source === at || target === at)
    .sort((one, other) => other.weight - one.weight)
    .map(({ source, target }) => (source === at ? target : source));

function part({ entities, connections }, order) {
  const places = new Map(order.map((was, now) => [was, now]));
  return {
    entities: order.map((at) => entities[at]),
    connections: connections
      .filter(({ source, target }) => places.has(source) && places.has(target))
      .map((one) => ({ ...one, source: places.get(one.source), target: places.get(one.target) })),
  };
}
