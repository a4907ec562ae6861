/** What failed, told once for each reason. */

const NAMED = 10;

/** {name, error, …} in groups with the same reason: a folder may hold hundreds that are refused for the same one. */
export function alike(failed) {
  const groups = new Map();
  for (const item of failed) {
    const reason = `${item.error.message} ${item.error.said ?? ""}`;
    if (!groups.has(reason)) groups.set(reason, []);
    groups.get(reason).push(item);
  }
  return [...groups.values()];
}

/** The first names of many. */
export const named = (names) => [...names.slice(0, NAMED), names.length > NAMED && "…"].filter(Boolean).join(", ");
