/** Keys for programs, with code that uses them. */

import { html, useState } from "../../lib/html.js";
import { api, everything } from "../../lib/api.js";
import { apiAddress } from "../../lib/place.js";
import { useAction, useResource } from "../../lib/resource.js";
import { query, setQuery } from "../../lib/router.js";
import { ago, day, t } from "../../lib/words.js";
import { Badge, Button, Copyable, Empty, Head, Loaded, Notice } from "../../parts/basics.js";
import { Check, Field, Form } from "../../parts/forms.js";
import { Confirm, Dialog, say } from "../../parts/layers.js";

const SCOPES = {
  ask: ["Read and ask", "Search, ask questions, read documents."],
  tools: ["Run tools", "Call the tools of plugins."],
  manage: ["Change things", "Upload, create, share and delete, as you can."],
};
const DAYS = { "30 days": 30, "90 days": 90, "A year": 365 };

export default function Keys() {
  const keys = useResource((signal) => everything(api.keys, { signal }));
  const [made, setMade] = useState(null);
  const [revoking, setRevoking] = useState(null);
  const create = () => setQuery({ new: 1 });
  return html`<div class="page">
    <${Head} title=${t("Keys for programs")} about=${t("A key lets a program act as you, within the scopes that you give it.")}>
      <${Button} kind="primary" icon="plus" onClick=${create}>${t("New key")}<//>
    <//>
    ${made && html`<${Notice} tone="good" title=${t("Copy the key now: it is shown only this once.")}><${Copyable} text=${made.token} label=${t("The new key")} /><//>`}
    <${Loaded} of=${keys}>${(list) =>
      list.length === 0
        ? html`<${Empty} icon="keys" title=${t("No keys yet")} action=${html`<${Button} kind="primary" icon="plus" onClick=${create}>${t("New key")}<//>`}>${t("Make one for each program, so that you can revoke each on its own.")}<//>`
        : html`<div class="table-box" tabindex="0" role="region" aria-label=${t("Keys for programs")}><table>
            <thead><tr><th>${t("Name")}</th><th>${t("Scopes")}</th><th>${t("Last used")}</th><th>${t("Works until")}</th><th><span class="hidden">${t("Actions")}</span></th></tr></thead>
            <tbody>${list.map(
              (key) => html`<tr key=${key.id}>
                <td><span class="name">${key.name}</span> <code class="faint">…${key.last_four}</code></td>
                <td><div class="row start">${key.scopes.map((scope) => html`<${Badge}>${t(SCOPES[scope]?.[0] ?? scope)}<//>`)}</div></td>
                <td>${key.last_used_at ? ago(key.last_used_at) : t("never")}</td>
                <td>${key.expires_at ? day(key.expires_at) : t("no end")}</td>
                <td class="right"><${Button} small onClick=${() => setRevoking(key)}>${t("Revoke")}<//></td>
              </tr>`,
            )}</tbody></table></div>`
    }<//>
    <${Snippets} token=${made?.token ?? "plk_…"} />
    ${query.value.get("new") === "1" && html`<${Create} onMade=${(key) => { setMade(key); keys.reload(); }} onClose=${() => setQuery({ new: null })} />`}
    ${revoking && html`<${Confirm} title=${t("Revoke “{name}”?", { name: revoking.name })} confirm=${t("Revoke")} onClose=${() => setRevoking(null)}
      onConfirm=${async () => { await api.revokeKey({ token_id: revoking.id }); say(t("The key no longer works.")); keys.reload(); }}><p>${t("Programs that use it are refused at once.")}</p><//>`}
  </div>`;
}

function Create({ onMade, onClose }) {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState(["ask"]);
  const [days, setDays] = useState("90");
  const action = useAction(async () => {
    const until = days ? new Date(Date.now() + Number(days) * 86_400_000).toISOString() : null;
    onMade(await api.createKey({ body: { name, scopes, expires_at: until } }));
    onClose();
  });
  const toggle = (scope, on) => setScopes(on ? [...scopes, scope] : scopes.filter((other) => other !== scope));
  return html`<${Dialog} title=${t("New key for a program")} onClose=${onClose}>
    <${Form} action=${action} submit=${t("Create")} onCancel=${onClose} disabled=${!name.trim() || !scopes.length}>
      <${Field} label=${t("Name")} value=${name} onInput=${setName} hint=${t("The program that will use it.")} required autofocus error=${action.error?.fields?.name} />
      <fieldset class="choice"><legend>${t("What may it do?")}</legend>
        ${Object.entries(SCOPES).map(([scope, [title, about]]) => html`<${Check} key=${scope} label=${t(title)} hint=${t(about)} checked=${scopes.includes(scope)} onChange=${(on) => toggle(scope, on)} />`)}
      </fieldset>
      <${Field} as="select" label=${t("How long?")} value=${days} onInput=${setDays}>
        ${Object.entries(DAYS).map(([title, count]) => html`<option value=${String(count)}>${t(title)}</option>`)}
      <//>
    <//>
  <//>`;
}

const TOOLS = {
  curl: (url, token) => `curl ${url}/v1/ai/chat/completions \\\n  -H "Authorization: Bearer ${token}" -H "Content-Type: application/json" \\\n  -d '{"model": "pipeline/NAME", "messages": [{"role": "user", "content": "…"}]}'`,
  Python: (url, token) => `from openai import OpenAI\n\nclient = OpenAI(base_url="${url}/v1/ai", api_key="${token}")\nanswer = client.chat.completions.create(\n    model="pipeline/NAME", messages=[{"role": "user", "content": "…"}]\n)\nprint(answer.choices[0].message.content)`,
  "Open WebUI": (url, token) => `OPENAI_API_BASE_URL=${url}/v1/ai\nOPENAI_API_KEY=${token}`,
  MCP: (url, token) => JSON.stringify({ mcpServers: { platform: { url: `${url}/mcp`, headers: { Authorization: `Bearer ${token}` } } } }, null, 2),
};

function Snippets({ token }) {
  const [shown, setShown] = useState("curl");
  return html`<section class="stack" aria-labelledby="snippets">
    <div><h2 id="snippets">${t("Use a key")}</h2><p class="muted">${t("Choose a pipeline as the model to ask your documents.")}</p></div>
    <div class="row">${Object.keys(TOOLS).map((name) => html`<${Button} small key=${name} aria-pressed=${shown === name} class=${shown === name ? "pressed" : ""} onClick=${() => setShown(name)}>${name}<//>`)}</div>
    <${Copyable} text=${TOOLS[shown](apiAddress(), token)} label=${shown} />
  </section>`;
}
