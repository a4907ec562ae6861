/** Backups: list, create, rehearse a restore, and restore one. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction, usePolling, useResource } from "../../lib/resource.js";
import { ago, bytes, dateTime, t } from "../../lib/words.js";
import { Badge, Button, Empty, Failure, Loaded, Notice } from "../../parts/basics.js";
import { Field, Form } from "../../parts/forms.js";
import { Dialog, say } from "../../parts/layers.js";
import { OperationsHead } from "./tabs.js";

const PAUSE = 1_500;
const ENDED = ["done", "error"];

async function load(signal) {
  const [{ archives }, { jobs }] = await Promise.all([api.backups({ signal }), api.backupJobs({ signal })]);
  return { archives, jobs };
}

export default function Backups() {
  const found = useResource(load);
  const [restoring, setRestoring] = useState(null);
  const going = found.data?.jobs.some((job) => !ENDED.includes(job.status)) ?? false;
  usePolling(found.reload, PAUSE, going);
  const make = useAction(async () => {
    await api.makeBackup();
    say(t("The backup has begun."));
    await found.reload();
  });
  const rehearse = useAction(async (archive) => {
    await api.rehearseRestore({ name: archive.name });
    say(t("The rehearsal has begun."));
    await found.reload();
  });
  return html`<div class="page">
    <${OperationsHead} current="/operations/backups" about=${t("Rows, files and settings, saved while the server is running.")}>
      <${Button} kind="primary" icon="plus" busy=${make.busy || going} onClick=${make.run}>${t("Back up now")}<//><//>
    <${Failure} error=${make.error ?? rehearse.error} />
    <${Loaded} of=${found}>${({ archives, jobs }) => html`
      ${archives.length ? html`<div class="table-box" tabindex="0" role="region" aria-label=${t("Backups")}><table>
        <thead><tr><th>${t("Name")}</th><th>${t("Made")}</th><th class="number">${t("Size")}</th><th><span class="hidden">${t("Actions")}</span></th></tr></thead>
        <tbody>${archives.map((one) => html`<tr key=${one.name}><td><span class="name">${one.name}</span></td><td>${dateTime(one.modified_at)}</td><td class="number">${bytes(one.size_bytes)}</td>
          <td class="right"><div class="row"><${Button} small disabled=${rehearse.busy || going} onClick=${() => rehearse.run(one)}>${t("Rehearse")}<//><${Button} small onClick=${() => setRestoring(one)}>${t("Restore")}<//></div></td></tr>`)}</tbody></table></div>
        <p class="muted">${t("A rehearsal restores a backup into a temporary copy and compares rows, files and answers. Nothing changes here.")}</p>`
        : html`<${Empty} icon="download" title=${t("No backups yet")}>${t("Make one now, or set PLATFORM_BACKUP_SCHEDULE to have them made automatically.")}<//>`}
      ${jobs.length > 0 && html`<${Jobs} jobs=${jobs} />`}
      ${restoring && html`<${Restore} archive=${restoring} onBegun=${found.reload} onClose=${() => setRestoring(null)} />`}
    `}<//>
  </div>`;
}

const TONES = { done: "good", error: "bad", running: "accent" };
const ACTIONS = { backup: "Backup", restore: "Restore", drill: "Rehearsal" };
const WORDS = { pending: "Waiting", running: "Running", done: "Done", error: "Failed" };

const REQUESTERS = { operator: "the operator", schedule: "the schedule" };
const requesterOf = ({ requested_by: by }) => (REQUESTERS[by] ? t(REQUESTERS[by]) : t("account {id}", { id: by }));

function Jobs({ jobs }) {
  return html`<section class="stack" aria-labelledby="backup-jobs"><h2 id="backup-jobs">${t("What was done")}</h2>
    <div class="table-box" tabindex="0" role="region" aria-labelledby="backup-jobs"><table>
      <thead><tr><th>${t("Action")}</th><th>${t("Backup")}</th><th>${t("State")}</th><th>${t("By")}</th><th>${t("Started")}</th></tr></thead>
      <tbody>${jobs.map((job) => html`<tr key=${job.id}><td>${t(ACTIONS[job.action] ?? job.action)}</td><td>${job.archive ?? ""}</td>
        <td><${Badge} tone=${TONES[job.status] ?? "neutral"}>${t(WORDS[job.status] ?? job.status)}<//>${job.error && html`<small class="bad block">${job.error}</small>`}
          ${job.status === "done" && job.output.split("\n").map((line) => html`<small class="muted block">${line}</small>`)}</td>
        <td class="nowrap">${requesterOf(job)}</td><td class="nowrap">${ago(job.requested_at)}</td></tr>`)}</tbody></table></div></section>`;
}

/** The name must be typed again: everything since that backup will be lost. */
function Restore({ archive, onBegun, onClose }) {
  const [typed, setTyped] = useState("");
  const action = useAction(async () => {
    await api.restoreBackup({ name: archive.name, body: { confirm_filename: typed } });
    say(t("The restore has begun. The server restarts."));
    onBegun();
    onClose();
  });
  return html`<${Dialog} title=${t("Go back to this backup?")} onClose=${onClose}>
    <${Notice} tone="warn" title=${t("Everything that changed since then is replaced.")}>${t("The server stops for the restore and starts again; everyone, including you, then has to sign in again. Backups are kept.")}<//>
    <${Form} action=${action} submit=${t("Restore")} submitKind="danger" onCancel=${onClose} disabled=${typed !== archive.name}>
      <p class="muted"><code>${archive.name}</code></p>
      <${Field} label=${t("Type the name of the backup")} value=${typed} onInput=${setTyped} autocomplete="off" autofocus />
    <//>
  <//>`;
}
