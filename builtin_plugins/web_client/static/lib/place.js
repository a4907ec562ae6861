/** Where this page is served, and where the API is, from two tags of the page. */

const read = (name) => document.querySelector(`meta[name="${name}"]`)?.content ?? "";

/** The path at which a proxy serves the platform, such as "/platform"; "" for a host name of its own. */
export const ROOT = new URL(read("platform-root") || "/", document.URL).pathname.replace(/\/+$/, "");

/** The path before every address of the client: "" on its own port, "/app" at the gateway, both below ROOT. */
export const BASE = ROOT + read("platform-base");

/** The prefix of the API's paths: its origin, or only a path if that is the page's own. */
export const API = read("platform-api") || ROOT;

/** The absolute address of a path of the API; an absolute address stays the same. */
export const apiAddress = (path = "") => (/^https?:/.test(path) ? path : new URL(API + path, location.origin).href.replace(/\/$/, ""));

// Browsers resolve the icon again when the address changes; a relative one is only right for the first.
for (const icon of document.querySelectorAll('link[rel="icon"]')) icon.href = new URL(icon.getAttribute("href"), document.URL).href;
