/** Teams: people who share knowledge bases and pipelines. */

import { html, useState } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { useAction, useResource } from "../../lib/resource.js";
import { Link, go } from "../../lib/router.js";
import { plural, t } from "../../lib/words.js";
import { Button, Empty, Head, Loaded } from "../../parts/basics.js";
import { Field, Form } from "../../parts/forms.js";
import { Dialog } from "../../parts/layers.js";
import { PeopleTabs } from "./tabs.js";

export default function Teams() {
  const teams = useResource((signal) => everything(api.teams, { signal }));
  const [creating, setCreating] = useState(false);
  const add = html`<${Button} kind="primary" icon="plus" onClick=${() => setCreating(true)}>${t("New team")}<//>`;
  return html`<div class="page">
    <${Head} title=${t("People")} about=${t("Share with a team, and everyone in it can ask.")}>${add}<//>
    <${PeopleTabs} current="/people" />
    <${Loaded} of=${teams}>${(list) =>
      list.length === 0
        ? html`<${Empty} icon="people" title=${t("No teams yet")} action=${add}>${t("Make one and invite people by e-mail. Then choose it under “Who sees this?”.")}<//>`
        : html`<div class="cards">${list.map(
            (team) => html`<${Link} class="tile" key=${team.id} to=${`/people/teams/${team.id}`}>
              <h2>${team.name}</h2>${team.description && html`<p>${team.description}</p>`}
              <div class="tile-foot">${plural(team.member_count, "One member", "{n} members")}</div><//>`,
          )}</div>`
    }<//>
    ${creating && html`<${Create} onClose=${() => setCreating(false)} />`}
  </div>`;
}

function Create({ onClose }) {
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const action = useAction(async () => {
    const team = await api.createTeam({ body: { name, description } });
    go(`/people/teams/${team.id}`);
  });
  return html`<${Dialog} title=${t("New team")} onClose=${onClose}>
    <${Form} action=${action} submit=${t("Create")} onCancel=${onClose} disabled=${!name.trim()}>
      <${Field} label=${t("Name")} value=${name} onInput=${setName} required autofocus error=${action.error?.fields?.name} />
      <${Field} label=${t("Description")} as="textarea" value=${description} onInput=${setDescription} optional />
    <//>
  <//>`;
}
