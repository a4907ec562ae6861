/** Keeps the client working in a browser that stores nothing for this site (its cookies are blocked). */

/** Keep in memory, until the page is closed or reloaded, what the browser refuses to store. */
export function replaceBlockedStorage() {
  for (const name of ["localStorage", "sessionStorage"]) {
    try {
      window[name].getItem("");
    } catch {
      Object.defineProperty(window, name, { value: inMemory() });
    }
  }
}

function inMemory() {
  const kept = new Map();
  return {
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, text) => kept.set(key, String(text)),
    removeItem: (key) => kept.delete(key),
  };
}
