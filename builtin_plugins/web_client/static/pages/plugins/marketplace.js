/** The marketplace: finding plugins, and the user's own submissions. */

import { html } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { Link, query, setQuery } from "../../lib/router.js";
import { isAdmin } from "../../lib/session.js";
import { number, t } from "../../lib/words.js";
import { Badge, Button, Empty, Head, Loaded } from "../../parts/basics.js";
import { Icon } from "../../parts/icons.js";
import { PRICES, STATES } from "./labels.js";
import { NewListing } from "./new-listing.js";
import { PluginTabs } from "./tabs.js";

const AT_ONCE = 30;

function load({ show, text, offset }, signal) {
  const page = { limit: AT_ONCE, offset };
  if (show === "mine") return api.mySubmissions({ query: page, signal });
  if (show === "review") return api.submissions({ query: page, signal });
  if (text) return api.searchListings({ query: { ...page, q: text }, signal });
  return api.listings({ query: page, signal });
}

export default function Marketplace() {
  const values = query.value;
  const [show, text, offset] = [values.get("show") ?? "", values.get("q") ?? "", Number(values.get("offset")) || 0];
  const found = useResource((signal) => load({ show, text, offset }, signal), [show, text, offset]);
  const views = { "": t("All"), mine: t("Your submissions"), ...(isAdmin.value ? { review: t("To review") } : {}) };
  return html`<div class="page">
    <${Head} title=${t("Plugins")} about=${t("Add what others have made.")}><${Button} icon="plus" onClick=${() => setQuery({ new: 1 })}>${t("Offer a plugin")}<//><//>
    <${PluginTabs} current="/plugins/marketplace" />
    <div class="filters">
      <input class="input search" type="search" placeholder=${t("Search the marketplace")} aria-label=${t("Search the marketplace")} value=${text} onChange=${(event) => setQuery({ q: event.target.value, show: null, offset: null })} />
      ${Object.entries(views).map(([value, title]) => html`<${Button} small key=${value} aria-pressed=${show === value} class=${show === value ? "pressed" : ""} onClick=${() => setQuery({ show: value, q: null, offset: null })}>${title}<//>`)}
    </div>
    <${Loaded} of=${found}>${({ plugins, total }) =>
      plugins.length
        ? html`<div class="cards">${plugins.map((listing) => html`<${Tile} key=${listing.id} listing=${listing} />`)}</div>
            ${total > AT_ONCE && html`<div class="row center"><${Button} disabled=${!offset} onClick=${() => setQuery({ offset: Math.max(0, offset - AT_ONCE) || null })}>${t("Previous")}<//><${Button} disabled=${offset + AT_ONCE >= total} onClick=${() => setQuery({ offset: offset + AT_ONCE })}>${t("Next")}<//></div>`}`
        : html`<${Empty} icon="plugins" title=${text ? t("Nothing found") : t("Nothing here yet")}>${show === "mine" ? t("A plugin that you submit is reviewed, and then offered to everyone.") : t("Try other words, or look at all plugins.")}<//>`
    }<//>
    ${values.get("new") === "1" && html`<${NewListing} onClose=${() => setQuery({ new: null })} />`}
  </div>`;
}

const Tile = ({ listing }) => html`<${Link} class="tile" to=${`/plugins/marketplace/${listing.id}`}>
  <h2>${listing.display_name}</h2><p>${listing.description}</p>
  <div class="tile-foot"><span>${listing.author}</span>
    ${listing.rating_count > 0 && html`<span class="row"><${Icon} name="star" size=${14} />${number(listing.rating_average, { maximumFractionDigits: 1 })}</span>`}
    <${Badge}>${t(PRICES[listing.pricing_model] ?? listing.pricing_model)}<//>${listing.status !== "approved" && html`<${Badge} tone="warn">${t(STATES[listing.status] ?? listing.status)}<//>`}</div>
<//>`;
