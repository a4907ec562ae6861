/** Tools: what models and programs can call, to read about and to try. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction, useResource } from "../../lib/resource.js";
import { query, setQuery } from "../../lib/router.js";
import { t } from "../../lib/words.js";
import { Badge, Empty, Head, Loaded } from "../../parts/basics.js";
import { Form } from "../../parts/forms.js";
import { Icon } from "../../parts/icons.js";
import { Json } from "../../parts/json.js";
import { Dialog } from "../../parts/layers.js";
import { Parameter } from "../../parts/parameter.js";

export default function Tools() {
  const found = useResource((signal) => api.tools({ signal }));
  const [text, setText] = useState("");
  const shown = query.value.get("tool");
  const fits = (tool) => `${tool.function.name} ${tool.function.description}`.toLowerCase().includes(text.toLowerCase());
  return html`<div class="page">
    <${Head} title=${t("Tools")} about=${t("What models, agents and programs can call in your name. Try one before you rely on it.")} />
    <${Loaded} of=${found}>${({ tools }) =>
      !tools.length
        ? html`<${Empty} icon="tools" title=${t("No tools")}>${t("Plugins bring tools. A webhook manifest with a search brings one, too.")}<//>`
        : html`<div class="filters"><input class="input search" type="search" placeholder=${t("Find a tool")} aria-label=${t("Find a tool")} value=${text} onInput=${(event) => setText(event.target.value)} /></div>
            <div class="cards">${tools.filter(fits).map((tool) => html`<${Tile} key=${tool.function.name} tool=${tool} />`)}</div>
            ${shown && tools.some((tool) => tool.function.name === shown) && html`<${Try} tool=${tools.find((tool) => tool.function.name === shown)} onClose=${() => setQuery({ tool: null })} />`}`
    }<//>
  </div>`;
}

function Tile({ tool }) {
  const { annotations, plugin } = tool.metadata;
  return html`<button type="button" class="tile" onClick=${() => setQuery({ tool: tool.function.name })}>
    <h2>${tool.function.name}</h2><p>${tool.function.description}</p>
    <span class="tile-foot"><span>${plugin}</span>
      ${annotations.readOnlyHint ? html`<${Badge} tone="good">${t("only reads")}<//>` : html`<${Badge} tone=${annotations.destructiveHint ? "bad" : "warn"}>${annotations.destructiveHint ? t("can delete") : t("changes things")}<//>`}
      ${annotations.openWorldHint && html`<${Badge}><${Icon} name="globe" size=${13} />${t("reaches other systems")}<//>`}</span>
  </button>`;
}

function Try({ tool, onClose }) {
  const { properties = {}, required = [] } = tool.function.parameters;
  const [values, setValues] = useState({});
  const [result, setResult] = useState(null);
  const action = useAction(async () => {
    setResult(await api.runTool({ name: tool.function.name, body: values }));
  });
  const set = (name, value) => {
    const next = { ...values, [name]: value };
    if (value === "") delete next[name];
    setValues(next);
  };
  return html`<${Dialog} title=${tool.function.name} onClose=${onClose} wide>
    <p class="muted">${tool.function.description}</p>
    <${Form} action=${action} submit=${t("Run")}>
      ${Object.entries(properties).map(([name, schema]) => html`<${Parameter} key=${name} name=${name} schema=${schema} required=${required.includes(name)} value=${values[name]} onChange=${(value) => set(name, value)} />`)}
      ${!Object.keys(properties).length && html`<p class="muted">${t("It needs no input.")}</p>`}
    <//>
    ${result && html`<div class="stack close" aria-live="polite"><h3>${t("Result")}</h3><${Json} label=${t("Result")} value=${result.result} /></div>`}
  <//>`;
}
