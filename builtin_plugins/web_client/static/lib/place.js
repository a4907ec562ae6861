/** Where this page, its files and the API are served, from tags of the page. */

const read = (name) => document.querySelector(`meta[name="${name}"]`)?.content ?? "";

/** The path at which a proxy serves the platform, such as "/platform"; "" for a host name of its own. */
export const ROOT = new URL(read("platform-root") || "/", document.URL).pathname.replace(/\/+$/, "");

/** The path before every address of the client: "" on its own port, "/app" at the gateway, both below ROOT. */
export const BASE = ROOT + read("platform-base");

/** The prefix of the API's paths: its origin, or only a path if that is the page's own. */
export const API = read("platform-api") || ROOT;

/** The absolute address of a path of the API; an absolute address stays the same. */
export const apiAddress = (path = "") => (/^https?:/.test(path) ? path : new URL(API + path, location.origin).href.replace(/\/$/, ""));

/** The absolute address of the client's files. Read at once: a relative one is only right for the page's first address. */
export const ASSETS = new URL(".", document.querySelector('script[type="module"]').src).href;

/** The codes of the languages that there are files for. */
export const LANGUAGE_FILES = read("platform-languages").split(" ").filter(Boolean);

// Browsers resolve the icon again when the address changes; a relative one is only right for the first.
for (const icon of document.querySelectorAll('link[rel="icon"]')) icon.href = new URL(icon.getAttribute("href"), document.URL).href;
