/** The server's state: its services, health checks, background jobs. */

import { html } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction, usePolling, useResource } from "../../lib/resource.js";
import { owns } from "../../lib/session.js";
import { ago, plural, t } from "../../lib/words.js";
import { Badge, Button, Empty, Loaded, Meter, Notice } from "../../parts/basics.js";
import { BaseFigures } from "../../parts/base-figures.js";
import { sayError } from "../../parts/layers.js";
import { titleOf } from "./jobs.js";
import { JobsPlot } from "./jobs-plot.js";
import { OperationsHead } from "./tabs.js";

const PAUSE = 5_000;
const TONES = { healthy: "good", degraded: "warn", unhealthy: "bad", unreachable: "neutral", done: "good", running: "accent", failed: "bad" };
const WORDS = { healthy: "Healthy", degraded: "Degraded", unhealthy: "Unhealthy", unreachable: "Unavailable", queued: "Waiting", running: "Running", done: "Done", failed: "Failed", cancelled: "Cancelled" };

const StateBadge = ({ state }) => html`<${Badge} tone=${TONES[state] ?? "neutral"}>${t(WORDS[state] ?? state)}<//>`;

export default function Operations() {
  const health = useResource((signal) => api.status({ signal }));
  const jobs = useResource((signal) => api.jobs({ query: { limit: 50 }, signal }));
  usePolling(() => Promise.all([health.reload(), jobs.reload()]), PAUSE);
  return html`<div class="page">
    <${OperationsHead} current="/operations" about=${t("How the server is doing, and what it is working on.")} />
    <${Loaded} of=${health}>${({ services }) => html`<${Services} services=${services} />`}<//>
    <section class="stack" aria-labelledby="questions"><h2 id="questions">${t("Your knowledge bases")}</h2>
      <${BaseFigures} /></section>
    <section class="stack" aria-labelledby="jobs"><h2 id="jobs">${t("Background jobs")}</h2>
      <${JobsPlot} />
      <${Loaded} of=${jobs}>${({ items }) => html`<${Jobs} items=${items} onChanged=${jobs.reload} />`}<//>
    </section>
  </div>`;
}

function Services({ services }) {
  const gateway = services.find((service) => service.name === "api-gateway");
  const bad = Object.entries(gateway?.checks ?? {}).filter(([, text]) => text.startsWith("unhealthy"));
  return html`
    ${bad.map(([name, text]) => html`<${Notice} tone="bad" key=${name} title=${name}>${text.replace(/^unhealthy:\s*/, "")}<//>`)}
    <div class="table-box" tabindex="0" role="region" aria-label=${t("Services")}><table>
      <thead><tr><th>${t("Service")}</th><th>${t("State")}</th><th>${t("Version")}</th><th>${t("Checks")}</th></tr></thead>
      <tbody>${services.map(
        (service) => html`<tr key=${service.name}><td class="nowrap"><span class="name">${service.name}</span></td><td><${StateBadge} state=${service.status} /></td>
          <td>${service.version ?? ""}</td><td class="muted">${service.error ?? summary(service.checks)}</td></tr>`,
      )}</tbody></table></div>`;
}

function summary(checks) {
  const all = Object.entries(checks ?? {});
  const bad = all.filter(([, text]) => text.startsWith("unhealthy"));
  const good = all.filter(([, text]) => text === "healthy").length;
  return bad.length ? bad.map(([name]) => name).join(", ") : plural(good, "One check passed", "{n} checks passed");
}

function Jobs({ items, onChanged }) {
  if (!items.length) return html`<${Empty} icon="operations" title=${t("Nothing to do")}>${t("Documents that are being read, and other long work, show up here.")}<//>`;
  return html`<div class="table-box" tabindex="0" role="region" aria-labelledby="jobs"><table>
    <thead><tr><th>${t("Job")}</th><th>${t("State")}</th><th class="wide-only">${t("Progress")}</th><th>${t("Started")}</th><th><span class="hidden">${t("Actions")}</span></th></tr></thead>
    <tbody>${items.map((job) => html`<${JobRow} key=${job.id} job=${job} onChanged=${onChanged} />`)}</tbody></table></div>`;
}

function JobRow({ job, onChanged }) {
  const cancel = useAction(async () => {
    await api.cancelJob({ job_id: job.id }).catch(sayError);
    onChanged();
  });
  const going = ["queued", "running"].includes(job.status);
  return html`<tr>
    <td><span class="name">${titleOf(job)}</span>${job.error && html`<small class="bad block">${job.error}</small>`}</td>
    <td><${StateBadge} state=${job.status} /></td>
    <td class="wide-only">${job.status === "running" && html`<${Meter} value=${job.progress.done} max=${job.progress.total} label=${titleOf(job)} />`}<small class="faint">${going ? job.message : ""}</small></td>
    <td class="nowrap">${ago(job.created_at)}</td>
    <td class="right">${going && owns(job) && html`<${Button} small busy=${cancel.busy} disabled=${job.cancel_requested} onClick=${cancel.run}>${t("Cancel")}<//>`}</td>
  </tr>`;
}
