/** Where this page was served, and where the API is: two tags of the page say so. */

const read = (name) => document.querySelector(`meta[name="${name}"]`)?.content ?? "";

/** The path at which a proxy serves the platform, such as "/platform"; "" for a host name of its own. */
export const ROOT = new URL(read("platform-root") || "/", document.URL).pathname.replace(/\/+$/, "");

/** The path before every address of the client: "" on its own port, "/app" at the gateway, both below ROOT. */
export const BASE = ROOT + read("platform-base");

/** What comes before the paths of the API: its origin, or for the page's own the path alone. */
export const API = read("platform-api") || ROOT;

/** The address of a path of the API as somebody else would write it; a whole address stays. */
export const apiAddress = (path = "") => (/^https?:/.test(path) ? path : new URL(API + path, location.origin).href.replace(/\/$/, ""));

// Browsers look for the icon again when the address changes; what the page wrote counts from its first one.
for (const icon of document.querySelectorAll('link[rel="icon"]')) icon.href = new URL(icon.getAttribute("href"), document.URL).href;
