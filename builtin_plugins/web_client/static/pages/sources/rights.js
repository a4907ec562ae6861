/** Permissions at a source: of when they are, who there has no counterpart here, and who is whom by hand. */

import { html, useState } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { useAction, useResource } from "../../lib/resource.js";
import { dateTime, number, plural, t } from "../../lib/words.js";
import { Badge, Button, Failure, Loaded, Notice } from "../../parts/basics.js";
import { Choice, Field, Form } from "../../parts/forms.js";
import { Dialog, say } from "../../parts/layers.js";
import { everybody } from "../../parts/people.js";

const AT_ONCE = 50;
const KINDS = { person: "Person", group: "Group" };
const ALIKE = { "": "Only as said of each group", id: "The group with the same id", name: "The group with the same name" };
const TARGETS = { account: "An account", team: "A team", sign_in_group: "A group of the sign-in", everyone: "Everybody who sees the knowledge base", nobody: "Nobody" };

async function load(id, mapped, offset, signal) {
  const query = { limit: AT_ONCE, offset, ...(mapped !== "" && { mapped }) };
  const [rights, principals, said] = await Promise.all([
    api.sourceRights({ source_id: id, signal }),
    api.sourcePrincipals({ source_id: id, query, signal }),
    api.counterparts({ source_id: id, signal }),
  ]);
  return { rights, principals, said: said.items };
}

/** Whether groups there are groups of the sign-in; what is said of one group comes before it. */
function Alike({ source, onSaved }) {
  const action = useAction(async (value) => {
    await onSaved(await api.changeSource({ source_id: source.id, body: { sign_in_groups: value || null } }));
    say(t("Saved"));
  });
  return html`<${Field} as="select" pick label=${t("Groups of the sign-in")} value=${source.sign_in_groups ?? ""} onInput=${action.run} disabled=${action.busy}
      hint=${t("Whom your identity provider puts into a group can count as in that group there. Choose this only if both have their groups from one directory.")}>
      ${Object.entries(ALIKE).map(([value, title]) => html`<option key=${value} value=${value}>${t(title)}</option>`)}<//>
    <${Failure} error=${action.error} />`;
}

export function Rights({ source, onChanged }) {
  const { id } = source;
  const [mapped, setMapped] = useState("false");
  const [edited, setEdited] = useState(null);
  const [offset, setOffset] = useState(0);
  const found = useResource((signal) => load(id, mapped, offset, signal), [id, mapped, offset]);
  const choose = (value) => {
    setMapped(value);
    setOffset(0);
  };
  const take = async (changed) => {
    onChanged(changed);
    await found.reload();
  };
  const shown = { false: t("Without a counterpart"), true: t("With a counterpart"), "": t("All") };
  return html`<${Loaded} of=${found}>${({ rights, principals, said }) => html`
    ${rights.is_closed && html`<${Notice} tone="bad" title=${t("Nobody may read its documents")}>${t("Its permissions have been unreadable for too long.")}<//>`}
    ${rights.problem && html`<${Notice} tone="warn" title=${t("Its permissions can’t be read")}><span lang="en">${rights.problem}</span><//>`}
    <dl class="facts">
      <dt>${t("Permissions as of")}</dt><dd>${rights.read_at ? dateTime(rights.read_at) : t("Not read yet")}</dd>
      <dt>${t("People without a counterpart")}</dt><dd>${t("{n} of {total}", { n: number(rights.people_unmapped), total: number(rights.people) })}</dd>
      <dt>${t("Groups without a counterpart")}</dt><dd>${t("{n} of {total}", { n: number(rights.groups_unmapped), total: number(rights.groups) })}</dd>
      <dt>${t("Documents that nobody may read")}</dt><dd>${number(rights.unreadable)}</dd>
    </dl>
    <p class="muted">${!rights.by_hand ? t("What is in it belongs to the account with its e-mail address; nobody else can be named.") : t("Whoever has no counterpart here can read nothing. People are matched by their confirmed e-mail address, groups by the people in them.")}</p>
    ${rights.by_hand && html`<${Alike} source=${source} onSaved=${take} />`}
    <div class="filters">${Object.entries(shown).map(([value, title]) => html`<${Button} small key=${value} aria-pressed=${mapped === value} class=${mapped === value ? "pressed" : ""} onClick=${() => choose(value)}>${title}<//>`)}</div>
    ${!principals.items.length && html`<p class="muted">${t("No people or groups")}</p>`}
    <ul class="list">${principals.items.map((one) => html`<li class="panel stack close" key=${`${one.kind}-${one.principal}`}><div class="row">
      <span class="grow">${one.name} <span class="faint">${t(KINDS[one.kind])}</span></span>
      ${one.targets.map((target) => html`<${Badge} key=${target}>${t(TARGETS[target])}<//>`)}
      ${rights.by_hand && html`<${Button} small onClick=${() => setEdited(one)}>${t("Say who it is")}<//>`}
    </div></li>`)}</ul>
    ${principals.total > AT_ONCE && html`<div class="row center"><${Button} disabled=${!offset} onClick=${() => setOffset(Math.max(0, offset - AT_ONCE))}>${t("Previous")}<//><${Button} disabled=${offset + AT_ONCE >= principals.total} onClick=${() => setOffset(offset + AT_ONCE)}>${t("Next")}<//></div>`}
    ${edited && html`<${Counterpart} id=${id} principal=${edited} said=${said} onSaved=${found.reload} onClose=${() => setEdited(null)} />`}
  `}<//>`;
}

/** What of the permissions needs the owner: people and groups that read nothing, documents that nobody reads. */
export function Unmapped({ id, to }) {
  const found = useResource((signal) => api.sourceRights({ source_id: id, signal }), [id]);
  if (!found.data?.read_at) return null;
  const { groups_unmapped: groups, people_unmapped: people, unreadable } = found.data;
  const lines = [
    groups > 0 && plural(groups, "One group at the source has no counterpart here.", "{n} groups at the source have no counterpart here."),
    people > 0 && plural(people, "One person at the source has no account here.", "{n} people at the source have no account here."),
    unreadable > 0 && plural(unreadable, "One document can be read by nobody here.", "{n} documents can be read by nobody here."),
  ].filter(Boolean);
  if (!lines.length) return null;
  return html`<${Notice} tone="info" title=${t("Some of its permissions could not be mapped")} action=${html`<${Button} small to=${to}>${t("Permissions")}<//>`}>${lines.join(" ")}<//>`;
}

/** The accounts, or the teams, that the user can name, as pairs of id and name; one that was named by somebody else as well. */
async function choices(target, before, signal) {
  const found = target === "account" ? await everybody(signal) : (await everything(api.teams, { query: { mine: true }, signal })).map(({ id, name }) => [id, name]);
  const known = before?.target !== target || found.some(([id]) => id === before.target_id);
  const id = before?.target_id;
  return known ? found : [...found, [id, target === "account" ? t("Account {id}", { id }) : t("Team {id}", { id })]];
}

function Named({ target, before, value, onChange }) {
  const found = useResource((signal) => choices(target, before, signal), [target]);
  return html`<${Loaded} of=${found} lines=${1}>${(list) => list.length
    ? html`<${Field} as="select" label=${t(target === "team" ? "Team" : "Account")} value=${value} onInput=${onChange} required>
        <option value="">${t("Choose one")}</option>${list.map(([id, name]) => html`<option key=${id} value=${id}>${name}</option>`)}<//>`
    : html`<p class="muted">${t("You are in no team.")}</p>`}<//>`;
}

function Counterpart({ id, principal, said, onSaved, onClose }) {
  const isIt = (one) => one.kind === principal.kind && one.principal === principal.principal;
  const before = said.find(isIt);
  const [target, setTarget] = useState(before?.target ?? "");
  const [which, setWhich] = useState(String(before?.target_id ?? ""));
  const [group, setGroup] = useState(before?.target_name ?? "");
  const isNumbered = target === "account" || target === "team";
  const isGroup = target === "sign_in_group";
  const choose = (value) => {
    setTarget(value);
    setWhich(value === before?.target ? String(before.target_id ?? "") : "");
  };
  const action = useAction(async () => {
    const mine = { kind: principal.kind, principal: principal.principal, target, target_id: isNumbered ? Number(which) : null, target_name: isGroup ? group : null };
    await api.replaceCounterparts({ source_id: id, body: { items: [...said.filter((one) => !isIt(one)), ...(target ? [mine] : [])] } });
    await onSaved();
    onClose();
    say(t("Saved"));
  });
  return html`<${Dialog} title=${principal.name} onClose=${onClose}>
    <${Form} action=${action} submit=${t("Save")} onCancel=${onClose} disabled=${(isNumbered && !Number(which)) || (isGroup && !group)}>
      <${Choice} legend=${t("Who is it here?")} value=${target} onChange=${choose} options=${[
        { value: "", title: t("Found automatically"), about: t("By e-mail address, or by the people in it.") },
        ...Object.entries(TARGETS).map(([value, title]) => ({ value, title: t(title) })),
      ]} />
      ${isNumbered && html`<${Named} key=${target} target=${target} before=${before} value=${which} onChange=${setWhich} />`}
      ${isGroup && html`<${Field} label=${t("Name of the group")} value=${group} onInput=${setGroup} maxlength="255" required hint=${t("Exactly as your identity provider writes it.")} />`}
      <${Failure} error=${action.error} />
    <//>
  <//>`;
}
