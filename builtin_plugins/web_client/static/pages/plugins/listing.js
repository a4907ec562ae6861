/** A plugin of the marketplace: reading about it, installing, rating, reviewing a submission. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction, useResource } from "../../lib/resource.js";
import { isAdmin } from "../../lib/session.js";
import { ago, number, plural, t } from "../../lib/words.js";
import { Badge, Button, Failure, Head, Loaded, Notice } from "../../parts/basics.js";
import { Field, Form } from "../../parts/forms.js";
import { Icon } from "../../parts/icons.js";
import { PRICES, STATES } from "./labels.js";

async function load(id, signal) {
  const [listing, mine, ratings] = await Promise.all([
    api.listing({ plugin_id: id, signal }),
    api.installations({ signal }),
    api.ratings({ plugin_id: id, signal }),
  ]);
  return { listing, ratings, installed: mine.installations.find((item) => item.plugin_id === id && item.status === "installed") };
}

export default function Listing({ id }) {
  const found = useResource((signal) => load(id, signal), [id]);
  const change = useAction(async (work) => {
    await work({ plugin_id: id });
    await found.reload();
  });
  const act = (title, work, kind = "plain") => html`<${Button} kind=${kind} busy=${change.busy} onClick=${() => change.run(work)}>${title}<//>`;
  return html`<div class="page narrow">
    <${Loaded} of=${found} back=${{ to: "/plugins/marketplace", title: t("Marketplace") }}>${({ listing, ratings, installed }) => html`
      <${Head} title=${listing.display_name} about=${listing.description} back=${{ to: "/plugins/marketplace", title: t("Marketplace") }}>
        ${installed ? html`${installed.enabled ? act(t("Turn off"), api.disableListing) : act(t("Turn on"), api.enableListing, "primary")}${act(t("Uninstall"), api.uninstallListing)}` : listing.status === "approved" && act(t("Install"), api.installListing, "primary")}
        ${listing.status === "draft" && act(t("Submit for review"), api.submitListing, "primary")}
      <//>
      <${Failure} error=${change.error} />
      ${listing.review_notes && html`<${Notice} tone="warn" title=${t("Review")}>${listing.review_notes}<//>`}
      <dl class="facts">
        ${listing.status !== "approved" && html`<dt>${t("State")}</dt><dd><${Badge} tone="warn">${t(STATES[listing.status] ?? listing.status)}<//></dd>`}
        <dt>${t("Author")}</dt><dd>${listing.author}</dd>
        <dt>${t("Version")}</dt><dd>${listing.current_version ?? t("unknown")}</dd>
        <dt>${t("Price")}</dt><dd class="row"><${Badge}>${t(PRICES[listing.pricing_model] ?? listing.pricing_model)}<//><span class="muted">${t("from the tier “{tier}”", { tier: listing.base_tier })}</span></dd>
        <dt>${t("Installed")}</dt><dd>${plural(listing.download_count, "once", "{n} times")}</dd>
        ${/^https?:/.test(listing.repository_url ?? "") && html`<dt>${t("Source code")}</dt><dd><a href=${listing.repository_url} target="_blank" rel="noreferrer noopener">${listing.repository_url}</a></dd>`}
      </dl>
      ${isAdmin.value && ["submitted", "in_review"].includes(listing.status) && html`<${Review} listing=${listing} onDone=${found.reload} />`}
      <${Ratings} id=${id} ratings=${ratings} mayRate=${Boolean(installed)} onRated=${found.reload} />
    `}<//>
  </div>`;
}

function Review({ listing, onDone }) {
  const [notes, setNotes] = useState("");
  const place = { plugin_id: listing.id };
  const reject = useAction(async () => {
    await api.rejectSubmission({ ...place, body: { notes } });
    onDone();
  });
  const approve = useAction(async () => {
    if (listing.status === "submitted") await api.claimSubmission(place);
    await api.approveSubmission(place);
    onDone();
  });
  return html`<section class="panel"><h2>${t("Review")}</h2>
    ${(listing.checks ?? []).map((check) => html`<${Notice} key=${check.check} tone=${check.ok ? "good" : "warn"} title=${check.check}>${check.message}<//>`)}
    <${Failure} error=${approve.error} />
    <div class="row"><${Button} kind="primary" busy=${approve.busy} onClick=${approve.run}>${t("Approve")}<//></div>
    <${Form} action=${reject} submit=${t("Reject")} submitKind="plain" disabled=${!notes.trim()}><${Field} label=${t("What must change?")} as="textarea" value=${notes} onInput=${setNotes} /><//>
  </section>`;
}

function Ratings({ id, ratings, mayRate, onRated }) {
  const [stars, setStars] = useState("5");
  const [text, setText] = useState("");
  const action = useAction(async () => {
    await api.rate({ plugin_id: id, body: { rating: Number(stars), review_text: text || null } });
    setText("");
    onRated();
  });
  return html`<section class="stack"><h2>${t("Ratings")}</h2>
    ${ratings.rating_count ? html`<p class="row"><${Icon} name="star" /><strong>${number(ratings.rating_average, { maximumFractionDigits: 1 })}</strong><span class="muted">${plural(ratings.rating_count, "one rating", "{n} ratings")}</span></p>` : html`<p class="muted">${t("Nobody has rated it yet.")}</p>`}
    ${ratings.reviews.map((review) => html`<article class="panel" key=${review.id}><p class="row"><strong>${review.username}</strong><span>${"★".repeat(review.rating)}</span><span class="faint">${ago(review.created_at)}</span></p>${review.review_text && html`<p class="passage-text">${review.review_text}</p>`}</article>`)}
    ${mayRate && html`<${Form} action=${action} submit=${t("Rate")}>
      <${Field} as="select" label=${t("Your rating")} value=${stars} onInput=${setStars}>${[5, 4, 3, 2, 1].map((count) => html`<option value=${String(count)}>${"★".repeat(count)}</option>`)}<//>
      <${Field} as="textarea" label=${t("Your review")} value=${text} onInput=${setText} optional />
    <//>`}
  </section>`;
}
