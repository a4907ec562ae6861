/** Adding a source: a form made from the schema of its kind, tried before it is saved. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction } from "../../lib/resource.js";
import { t } from "../../lib/words.js";
import { Button, Failure, Notice } from "../../parts/basics.js";
import { Field, Form } from "../../parts/forms.js";
import { Dialog, say } from "../../parts/layers.js";
import { Parameter } from "../../parts/parameter.js";

/** Titles of the kinds that are built in, and of their settings, and what is said of these: others come in the language of their plugin. */
const TITLES = [
  "Folder on the server", "Git repository", "Folder", "Address", "Branch", "User", "Link", "Access token",
  "Who may read", "E-mail domain", "WebDAV or Nextcloud", "S3 bucket", "Bucket", "Prefix", "Server", "Region",
  "Access key ID", "Read by version", "Secret access key", "Website", "Follow links", "Pages", "Depth",
  "Largest page in MB", "Pause", "RSS, Atom or JSON feed", "Entries", "Mailbox (IMAP)", "Port", "Encryption",
  "E-mail address", "Folders", "Password", "Readers", "Groups",
  "Confluence (untested with the real service)", "API token", "Edition", "Spaces", "Blog posts", "Attachments",
  "Public spaces", "Google Drive (untested with the real service)", "Key (JSON)", "Shared drive", "Account",
  "Ask who is in groups", "SharePoint or OneDrive (untested with the real service)", "Client secret", "Tenant",
  "Application ID", "Site", "Library", "Sign-in server",
];
const HINTS = [
  "Where to begin, such as https://example.org/docs/. Only what is below it is read.",
  "Otherwise only pages that the site's sitemaps name.",
  "A site with more is not read; narrow it down.",
  "Links that may lie between the beginning and a page.",
  "What is larger is left out.",
  "Seconds between two requests; longer if the site's robots.txt asks for it.",
  "Of an RSS, Atom or JSON feed.",
  "Newest entries that a run takes from the feed.",
  "Such as imap.example.org.",
  "993 with TLS, 143 with STARTTLS.",
  "TLS from the beginning, or by STARTTLS; never without.",
  "The mailbox's: only the account with it reads the mails; the user when empty.",
  "Separated by commas; all but drafts, junk and trash when empty.",
  "3 to 63 lower-case letters, digits, dots and hyphens.",
  "Only objects whose names begin with it, such as policies/; all when empty.",
  "Such as https://s3.example.org; Amazon's when empty.",
  "Region of the bucket.",
  "Sent with the secret access key; the bucket is read as by strangers when empty.",
  "In a bucket with versioning, each document names its version, and exactly that is read.",
  "A line for each prefix, such as hr/ = @hr, ann@example.org; * is everybody. The longest prefix decides. Everybody who sees the knowledge base reads all when empty.",
  "A line for each group, such as hr = ann@example.org, bob@example.org. What other groups are here is said in the source's table of counterparts.",
  "Such as https://example.atlassian.net/wiki.",
  "Data Center from 9.1 on, where permissions are read.",
  "E-mail address of the token's account in the cloud; empty for a personal access token.",
  "Keys of spaces, one in a line; all that the account sees when empty.",
  "Read them as well.",
  "Read those of what is read.",
  "Whoever may read a page there, or everybody who sees the knowledge base.",
  "Confluence may be used without signing in: everybody who sees the knowledge base reads spaces that are open to anonymous people. Otherwise nobody does for that reason.",
  "For Data Center: the user ann there has the address ann@domain.",
  "Its ID, from its address. Without one: what is in the account's own drive or shared with it.",
  "ID of a folder, from its address: only what is below it; all when empty.",
  "E-mail address of the account for which a service account reads, by domain-wide delegation; the service account itself when empty.",
  "Whoever may read a file there, or everybody who sees the knowledge base.",
  "With the Directory API; the account must be allowed to read groups.",
  "Google's, unless a proxy answers for it.",
  "ID or domain of the organization.",
  "Of the app registration whose client secret is the credential.",
  "Such as https://example.sharepoint.com/sites/team; or name a user instead.",
  "Sign-in name of the person whose OneDrive is read.",
  "Name of one document library, such as Documents; all of the site when empty.",
  "Another one in national clouds.",
];
export const titled = (text) => (TITLES.includes(text) ? t(text) : text);
const hinted = (text) => (HINTS.includes(text) ? t(text) : text);

const SCHEDULES = { "": "By hand", "@hourly": "Every hour", "@daily": "Every day", "@weekly": "Every week" };

export const linesOf = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);

export function AddSource({ base, kinds, onAdded, onClose }) {
  const [kind, setKind] = useState(kinds.find((one) => one.name === "folder") ?? kinds[0]);
  const [settings, setSettings] = useState({});
  const [name, setName] = useState("");
  const [secret, setSecret] = useState("");
  const [schedule, setSchedule] = useState("@hourly");
  const [exclude, setExclude] = useState("");
  const [tested, setTested] = useState(null);
  const { properties = {}, required = [] } = kind.settings_schema;
  const body = () => ({ kind: kind.name, settings, secret: (kind.secret && secret) || null });
  const attempt = useAction(async () => {
    setTested(null);
    setTested(await api.trySource({ kb_id: base, body: body() }));
  });
  const action = useAction(async () => {
    const made = await api.addSource({
      kb_id: base,
      body: { ...body(), name: name.trim() || titled(kind.title), schedule: schedule || null, filters: { exclude: linesOf(exclude) } },
    });
    say(t("The source was added. Its first run has begun."));
    onAdded(made);
  });
  const choose = (value) => {
    setKind(kinds.find((one) => one.name === value));
    setSettings({});
    setTested(null);
  };
  const set = (key, value) => {
    const next = { ...settings, [key]: value };
    if (value === "") delete next[key];
    setSettings(next);
  };
  const isComplete = required.every((key) => settings[key] !== undefined);
  return html`<${Dialog} title=${t("Add a source")} onClose=${onClose} wide>
    <p class="muted">${kind.guarded === "always" ? t("Only whoever may read something at the source may read it here.") : kind.guarded === "depends" ? t("The settings of the source decide who may read what comes from it.") : t("Everybody who sees this knowledge base will see what comes from the source, whatever its own permissions say.")}</p>
    <${Form} action=${action} submit=${t("Add")} onCancel=${onClose} disabled=${!isComplete}>
      <${Field} as="select" label=${t("Kind")} value=${kind.name} onInput=${choose}>${kinds.map((one) => html`<option key=${one.name} value=${one.name}>${titled(one.title)}</option>`)}<//>
      ${Object.entries(properties).map(([key, schema]) => html`<${Parameter} key=${`${kind.name}-${key}`} name=${key} schema=${{ ...schema, title: titled(schema.title ?? key), description: hinted(schema.description) }} required=${required.includes(key)} value=${settings[key]} onChange=${(value) => set(key, value)} />`)}
      ${kind.secret && html`<${Field} label=${titled(kind.secret)} type="password" value=${secret} onInput=${setSecret} autocomplete="off" optional hint=${t("Kept encrypted, and shown to nobody.")} />`}
      <${Field} label=${t("Name")} value=${name} onInput=${setName} placeholder=${titled(kind.title)} optional />
      <${Field} as="select" label=${t("When it runs")} value=${schedule} onInput=${setSchedule}>${Object.entries(SCHEDULES).map(([value, title]) => html`<option key=${value} value=${value}>${t(title)}</option>`)}<//>
      <${Field} as="textarea" label=${t("Leave out")} value=${exclude} onInput=${setExclude} optional hint=${t("Paths, one in a line, such as drafts/** or *.log")} />
      <div class="row"><${Button} busy=${attempt.busy} disabled=${!isComplete} onClick=${attempt.run}>${t("Try it")}<//></div>
      <${Failure} error=${attempt.error} />
      ${tested && html`<${Tested} tested=${tested} />`}
    <//>
  <//>`;
}

function Tested({ tested }) {
  if (!tested.ok) return html`<${Notice} tone="bad" title=${t("The source can’t be read")}><span lang="en">${tested.problem}</span><//>`;
  if (tested.found && !tested.items.length) return html`<${Notice} tone="good" title=${t("It works.")}>${t("Its items are not listed here, as not everybody may see them.")}<//>`;
  if (!tested.items.length) return html`<${Notice} tone="warn" title=${t("There is nothing")} />`;
  return html`<${Notice} tone="good" title=${t("It works. The first items:")}>${tested.items.map((one) => html`<span class="block">${one.path}</span>`)}<//>`;
}
