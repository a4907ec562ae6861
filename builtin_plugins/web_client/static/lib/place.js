/** Where this page was served, and where the API is: two tags of the page say so. */

const read = (name) => document.querySelector(`meta[name="${name}"]`)?.content ?? "";

/** The path before every address of the client: "" on its own port, "/app" at the gateway. */
export const BASE = read("platform-base");

/** The API's origin; "" for the page's own. */
export const API = read("platform-api");

/** The API's address as somebody else would write it. */
export const apiAddress = () => API || location.origin;
