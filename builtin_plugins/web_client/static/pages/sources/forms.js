/** The parts of the forms of a source: its settings by the schema of its kind, its filters, and trying them. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction } from "../../lib/resource.js";
import { t } from "../../lib/words.js";
import { Button, Failure, Notice } from "../../parts/basics.js";
import { Field } from "../../parts/forms.js";
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
  "The folder on the server, below one that the operator allows.",
  "Everybody who sees the knowledge base, or whoever may read a file on the server.",
  "With it, the user ann there has the address ann@domain; only if the permissions there are read.",
  "https://host/repository.git, or the path of a repository that the operator allows.",
  "The default branch when empty.",
  "Only what is below this folder of the repository.",
  "The user name that is sent with the token; most servers take any.",
  "Where people see a file, such as https://host/repository/src/{commit}/{path}; known for GitHub and GitLab.",
  "The folder. Nextcloud: https://host/remote.php/dav/files/USER/folder",
  "Sent with the password; none when empty.",
  "Everybody who sees the knowledge base, or the user and those to whom a file is shared.",
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
/** What the values of settings mean. */
const VALUES = {
  knowledge_base: "Everybody who sees the knowledge base",
  ...Object.fromEntries(["posix", "nextcloud", "confluence", "drive", "sharepoint"].map((name) => [name, "Whoever may read it there"])),
};
export const titled = (text) => (TITLES.includes(text) ? t(text) : text);
const NAMES = { cloud: "Cloud", data_center: "Data Center", tls: "TLS", starttls: "STARTTLS" };
const valued = (value) => (Object.hasOwn(VALUES, value) ? t(VALUES[value]) : NAMES[value] ?? String(value));

/** A value of a setting in words. */
export function settingOf(value) {
  if (typeof value === "boolean") return value ? t("Yes") : t("No");
  return Array.isArray(value) ? value.join(", ") : valued(value);
}
const hinted = (text) => (HINTS.includes(text) ? t(text) : text);

const linesOf = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);

/** What people have entered of a kind's settings; what is empty is left to the server. */
export function Settings({ kind, settings, onChange }) {
  const { properties = {}, required = [] } = kind.settings_schema;
  const set = (key, value) => {
    const next = { ...settings, [key]: value };
    if (value === "") delete next[key];
    onChange(next);
  };
  return Object.entries(properties).map(([key, schema]) => html`<${Parameter} key=${`${kind.name}-${key}`} name=${key} schema=${{ ...schema, title: titled(schema.title ?? key), description: hinted(schema.description), titles: valued }} required=${required.includes(key)} value=${settings[key] ?? undefined} onChange=${(value) => set(key, value)} />`);
}

export const isComplete = (kind, settings) => (kind.settings_schema.required ?? []).every((key) => settings[key] !== undefined);

/** Filters as they are typed, and as the API has them. */
export const typedOf = (filters) => ({
  include: (filters?.include ?? []).join("\n"),
  exclude: (filters?.exclude ?? []).join("\n"),
  media: (filters?.media_types ?? []).join("\n"),
  size: filters?.max_size_mb ?? "",
  days: filters?.max_age_days ?? "",
});
export const filtersOf = (typed) => ({
  include: linesOf(typed.include),
  exclude: linesOf(typed.exclude),
  media_types: linesOf(typed.media),
  max_size_mb: Number(typed.size) || null,
  max_age_days: Number(typed.days) || null,
});

export function Filters({ typed, onChange }) {
  const set = (name) => (value) => onChange({ ...typed, [name]: value });
  const [isOpen] = useState(Object.values(typed).some((value) => value !== ""));
  return html`<details open=${isOpen}><summary>${t("What is taken")}</summary><div class="stack">
    <${Field} as="textarea" label=${t("Only")} value=${typed.include} onInput=${set("include")} optional hint=${t("Paths, one in a line, such as policies/** or *.md; everything when empty")} />
    <${Field} as="textarea" label=${t("Leave out")} value=${typed.exclude} onInput=${set("exclude")} optional hint=${t("Paths, one in a line, such as drafts/** or *.log")} />
    <${Field} as="textarea" label=${t("Only these media types")} value=${typed.media} onInput=${set("media")} optional hint=${t("One in a line, such as application/pdf or text/*")} />
    <${Field} label=${t("Largest file in MB")} type="number" min="0" step="any" value=${typed.size} onInput=${set("size")} optional />
    <${Field} label=${t("Not older than, in days")} type="number" min="1" step="1" value=${typed.days} onInput=${set("days")} optional />
  </div></details>`;
}

/** A button that lists the first items with what is in the form, before that is saved. */
export function Trial({ base, body, disabled }) {
  const [tested, setTested] = useState(null);
  const attempt = useAction(async () => {
    setTested(null);
    setTested(await api.trySource({ kb_id: base, body }));
  });
  return html`<div class="row"><${Button} busy=${attempt.busy} disabled=${disabled} onClick=${attempt.run}>${t("Try it")}<//></div>
    <${Failure} error=${attempt.error} />
    ${tested && html`<${Tested} tested=${tested} />`}`;
}

function Tested({ tested }) {
  if (!tested.ok) return html`<${Notice} tone="bad" title=${t("The source can’t be read")}><span lang="en">${tested.problem}</span><//>`;
  if (tested.found && !tested.items.length) return html`<${Notice} tone="good" title=${t("It works.")}>${t("Its items are not listed here, as not everybody may see them.")}<//>`;
  if (!tested.items.length) return html`<${Notice} tone="warn" title=${t("There is nothing")} />`;
  return html`<${Notice} tone="good" title=${t("It works. The first items:")}>${tested.items.map((one) => html`<span class="block">${one.path}${one.skipped && html` <span class="faint" lang="en">${one.skipped}</span>`}</span>`)}<//>`;
}
