/** JSON for people to read. */

import { html } from "../lib/html.js";

export const Json = ({ value, label }) => html`<pre class="json" tabindex="0" role="region" aria-label=${label}>${typeof value === "string" ? value : JSON.stringify(value, null, 2)}</pre>`;
