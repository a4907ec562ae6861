/** One source: its state, its runs, and what it has left out and why. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { apiAddress } from "../../lib/place.js";
import { useAction, usePolling, useResource } from "../../lib/resource.js";
import { Link, go, query, setQuery } from "../../lib/router.js";
import { bytes, dateTime, number, t } from "../../lib/words.js";
import { Badge, Button, Copyable, Failure, Head, Loaded, Notice, Tabs } from "../../parts/basics.js";
import { Choice, Form } from "../../parts/forms.js";
import { Dialog, Menu } from "../../parts/layers.js";
import { ChangeSource } from "./change.js";
import { settingOf, titled } from "./forms.js";
import { Rights, Unmapped } from "./rights.js";
import { RunState, TRIGGERS, figuresOf, isActive, lastOf, nextOf } from "./states.js";

const PAUSE = 1_500;
const AT_ONCE = 50;
const STATES = { "": "All", stored: "Documents", skipped: "Left out", failed: "Failed", deleted_here: "Deleted here" };

export default function SourcePage({ base, id }) {
  const found = useResource((signal) => api.source({ source_id: id, signal }), [id]);
  const kinds = useResource((signal) => api.sourceKinds({ signal }), []);
  const kind = kinds.data?.items.find(({ name }) => name === found.data?.kind);
  const [dialog, setDialog] = useState("");
  const back = { to: `/documents/${base}/sources`, title: t("Sources") };
  const [asked, setAsked] = useState(0);
  const run = useAction(async (dry) => {
    await api.runSource({ source_id: id, body: { dry } });
    setAsked(asked + 1);
    await found.reload();
  });
  usePolling(found.reload, PAUSE, isActive(found.data?.last_run) || (found.data?.is_leaving ?? false));
  const tab = query.value.get("tab") ?? "runs";
  const here = `/documents/${base}/sources/${id}`;
  return html`<div class="page">
    <${Loaded} of=${found} back=${back}>${(source) => html`
      <${Head} title=${source.name} about=${[lastOf(source.last_run), nextOf(source)].filter(Boolean).join(" · ")} back=${back}>
        <${Button} kind="primary" icon="retry" busy=${run.busy || isActive(source.last_run)} disabled=${source.is_leaving} onClick=${() => run.run(false)}>${t("Run now")}<//>
        <${Menu} label=${t("More")} kind="plain" small=${false} items=${[
          { title: t("Show what would change"), icon: "search", onSelect: () => run.run(true) },
          { title: t("Change"), icon: "edit", onSelect: () => setDialog("change") },
          { title: t("Address for pushes"), icon: "share", onSelect: () => setDialog("push") },
          { title: t("Remove"), icon: "trash", danger: true, onSelect: () => setDialog("remove") },
        ]} />
      <//>
      <${Failure} error=${run.error} />
      <div class="row"><${RunState} run=${source.last_run} /><span class="muted">${source.last_run && figuresOf(source.last_run)}</span></div>
      ${source.is_leaving && html`<${Notice} title=${t("The source is being removed.")} />`}
      ${source.missing !== null && html`<${Missing} source=${source} onConfirmed=${found.reload} />`}
      ${source.problem && html`<${Notice} tone="bad" title=${t("The last run did not succeed")}><span lang="en">${source.problem}</span><//>`}
      ${source.watch_problem && html`<${Notice} tone="info" title=${t("Changes are not noticed at once")}><span lang="en">${source.watch_problem}</span><//>`}
      ${source.is_guarded && tab !== "rights" && html`<${Unmapped} id=${id} to=${`${here}?tab=rights`} />`}
      <${Tabs} label=${t("Views of this source")} current=${`${here}?tab=${tab}`} tabs=${[
        { title: t("Runs"), to: `${here}?tab=runs` },
        { title: t("Items"), to: `${here}?tab=items` },
        source.is_guarded && { title: t("Permissions"), to: `${here}?tab=rights` },
        { title: t("Details"), to: `${here}?tab=details` },
      ].filter(Boolean)} />
      ${tab === "runs" && html`<${Runs} id=${id} latest=${source.last_run} asked=${asked} />`}
      ${tab === "items" && html`<${Items} base=${base} id=${id} counts=${source.items} />`}
      ${tab === "rights" && html`<${Rights} source=${source} onChanged=${found.set} />`}
      ${tab === "details" && html`<${Facts} source=${source} kind=${kind} />`}
      ${dialog === "change" && html`<${ChangeSource} base=${base} source=${source} kind=${kind} onSaved=${found.set} onClose=${() => setDialog("")} />`}
      ${dialog === "push" && html`<${Push} id=${id} onClose=${() => setDialog("")} />`}
      ${dialog === "remove" && html`<${Remove} source=${source} onRemoved=${() => go(back.to)} onClose=${() => setDialog("")} />`}
    `}<//>
  </div>`;
}

/** Much is missing: people say whether that is right. */
function Missing({ source, onConfirmed }) {
  const action = useAction(async () => {
    await api.confirmSource({ source_id: source.id });
    await onConfirmed();
  });
  return html`<${Notice} tone="warn" title=${t("Much is missing at the source")}
    action=${html`<${Button} small kind="danger" busy=${action.busy} onClick=${action.run}>${t("Delete it here, too")}<//>`}>
    ${t("{n} of its documents were not found there. If that is a mistake, such as a disk that is not connected, repair it and run the source again.", { n: number(source.missing) })}
    <${Failure} error=${action.error} /><//>`;
}

function Runs({ id, latest, asked }) {
  const found = useResource((signal) => api.sourceRuns({ source_id: id, query: { limit: AT_ONCE }, signal }), [id, latest?.id, latest?.state, asked]);
  usePolling(found.reload, PAUSE, found.data?.items.some((run) => run.is_dry && isActive(run)) ?? false);
  return html`<${Loaded} of=${found}>${({ items }) => html`<ul class="list">${items.map((run) => html`<li class="panel stack close" key=${run.id}>
    <div class="row"><${RunState} run=${run} /><span class="grow">${dateTime(run.started_at)}</span></div>
    <p class="muted">${[t(TRIGGERS[run.trigger]), figuresOf(run), run.fetched_bytes > 0 && t("{size} fetched", { size: bytes(run.fetched_bytes) })].filter(Boolean).join(" · ")}</p>
    ${run.error && html`<p class="bad" lang="en">${run.error}</p>`}
    ${run.plan && html`<${Plan} run=${run} />`}
  </li>`)}</ul>`}<//>`;
}

const CHANGES = { added: "New", changed: "Changed", moved: "Moved", gone: "Gone", skipped: "Left out" };

function Plan({ run }) {
  const some = Object.entries(run.plan).filter(([, paths]) => paths.length);
  const isSame = run.added + run.changed + run.moved + run.gone === 0;
  if (!some.length && !isSame) return html`<p>${t("Its changes are not listed here, as not everybody may see them.")}</p>`;
  return html`${isSame && html`<p>${t("Nothing would change.")}</p>`}<dl class="facts">${some.map(([change, paths]) => html`<dt>${t(CHANGES[change])}</dt><dd>${paths.map((path) => html`<span class="block">${path}</span>`)}</dd>`)}</dl>`;
}

function Items({ base, id, counts }) {
  const state = query.value.get("state") ?? "";
  const offset = Number(query.value.get("offset")) || 0;
  const found = useResource((signal) => api.sourceItems({ source_id: id, query: { limit: AT_ONCE, offset, ...(state && { state }) }, signal }), [id, state, offset]);
  return html`<div class="filters">${Object.entries(STATES).map(([value, title]) => html`<${Button} small key=${value} aria-pressed=${state === value} class=${state === value ? "pressed" : ""} onClick=${() => setQuery({ state: value || null, offset: null })}>${t(title)}${value && ` ${number(counts[value] ?? 0)}`}<//>`)}</div>
    <${Loaded} of=${found}>${({ items, total }) => html`
      ${!items.length && html`<p class="muted">${t("There is nothing")}</p>`}
      <ul class="list">${items.map((item) => html`<li class="panel stack close" key=${item.id}>
        <div class="row"><span class="grow">${item.document_id ? html`<${Link} to=${`/documents/${base}/${item.document_id}`}>${item.path}<//>` : item.path}</span>
          ${item.state !== "stored" && html`<${Badge} tone=${item.state === "failed" ? "bad" : "neutral"}>${t(STATES[item.state] ?? "Waiting")}<//>`}</div>
        ${item.reason && html`<p class="muted" lang="en">${item.reason}</p>`}
      </li>`)}</ul>
      ${total > AT_ONCE && html`<div class="row center"><${Button} disabled=${!offset} onClick=${() => setQuery({ offset: Math.max(0, offset - AT_ONCE) || null })}>${t("Previous")}<//><${Button} disabled=${offset + AT_ONCE >= total} onClick=${() => setQuery({ offset: offset + AT_ONCE })}>${t("Next")}<//></div>`}
    `}<//>`;
}

function Facts({ source, kind }) {
  const { include, exclude, media_types: media, max_size_mb: size, max_age_days: days } = source.filters;
  const title = (key) => titled(kind?.settings_schema.properties?.[key]?.title ?? key);
  const facts = [
    [t("Kind"), titled(kind?.title ?? source.kind)],
    ...Object.entries(source.settings)
      .filter(([, value]) => value !== null && value !== "" && value.length !== 0)
      .map(([key, value]) => [title(key), settingOf(value)]),
    [t("When it runs"), source.schedule ?? t("By hand")],
    include.length && [t("Only"), include.join(", ")],
    exclude.length && [t("Leave out"), exclude.join(", ")],
    media.length && [t("Only these media types"), media.join(", ")],
    size && [t("Largest file in MB"), number(size)],
    days && [t("Not older than, in days"), number(days)],
    [t("Changes at the source"), source.is_watched ? t("Noticed at once") : t("Found by its runs")],
    kind?.secret && [t("Credential"), source.has_secret ? t("Stored") : t("None")],
  ].filter(Boolean);
  return html`<dl class="facts">${facts.map(([name, value]) => html`<dt>${name}</dt><dd>${String(value)}</dd>`)}</dl>`;
}

function Push({ id, onClose }) {
  const [address, setAddress] = useState("");
  const action = useAction(async () => {
    const made = await api.makePushAddress({ source_id: id });
    setAddress(apiAddress(made.path));
  });
  return html`<${Dialog} title=${t("Address for pushes")} onClose=${onClose}>
    <p>${t("Whoever calls this address begins a run, such as a repository’s webhook. It is shown only this once, and replaces an earlier one.")}</p>
    ${address ? html`<${Copyable} text=${address} label=${t("Address for pushes")} />` : html`<${Form} action=${action} submit=${t("Make an address")} onCancel=${onClose} />`}
  <//>`;
}

function Remove({ source, onRemoved, onClose }) {
  const [documents, setDocuments] = useState(source.is_guarded ? "delete" : "keep");
  const action = useAction(async () => {
    await api.removeSource({ source_id: source.id, query: { documents } });
    onRemoved();
  });
  return html`<${Dialog} title=${t("Remove this source?")} onClose=${onClose}>
    <${Form} action=${action} submit=${t("Remove")} submitKind="danger" onCancel=${onClose}>
      <${Choice} legend=${t("What becomes of its documents?")} value=${documents} onChange=${setDocuments} options=${[
        ...(source.is_guarded ? [] : [{ value: "keep", title: t("Keep them"), about: t("As if they had been uploaded.") }]),
        { value: "delete", title: t("Delete them"), about: t("With a receipt for each.") },
      ]} />
    <//>
  <//>`;
}
