/** Downloading a file in the browser. */

export function saveBlob(blob, name) {
  const address = URL.createObjectURL(blob);
  Object.assign(document.createElement("a"), { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

export const saveJson = (value, name) => saveBlob(new Blob([JSON.stringify(value, null, 2)], { type: "application/json" }), name);
