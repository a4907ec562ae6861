/** The dialog that connects a model server: its address and key, a test, then the model that answers. */

import { html, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { useAction } from "../../lib/resource.js";
import { plural, t } from "../../lib/words.js";
import { Field, Form } from "../../parts/forms.js";
import { Dialog, say } from "../../parts/layers.js";

const LONGEST = 24;

/** A free name for a server: its protocol on this machine, else the first word of its host. */
export function nameOf({ url, kind }, names) {
  const host = URL.canParse(url) ? new URL(url).hostname : "";
  const isNumber = /^[\d.]+$|^\[|^localhost$|^host\./.test(host);
  const words = host.replace(/^(api|www)\./, "").split(".");
  const word = (isNumber ? kind : words[0]).toLowerCase().replace(/[^a-z0-9-]/g, "").replace(/^[^a-z]+/, "").slice(0, LONGEST);
  const name = word && word !== "local" ? word : kind;
  let free = name;
  for (let count = 2; names.includes(free); count += 1) free = `${name}-${count}`;
  return free;
}

export function Connect({ names, fixed, onDone, onClose }) {
  const [url, setUrl] = useState("");
  const [key, setKey] = useState("");
  const [tested, setTested] = useState(null);
  const [model, setModel] = useState("");
  const address = { url: url.trim(), ...(key ? { key } : {}) };
  const set = (setter) => (value) => {
    setter(value);
    setTested(null);
  };
  const action = useAction(async () => {
    if (!tested) {
      const shown = await api.testModelServer({ body: address });
      setModel(shown.chat_models.length === 1 || shown.kind === "ollama" ? (shown.chat_models[0] ?? "") : "");
      return setTested(shown);
    }
    await api.connectModels({ name: nameOf(tested, names), body: { ...address, kind: tested.kind, ...(model && !fixed ? { default_model: model } : {}) } });
    say(t("Connected. It is used from now on."));
    onDone();
    return onClose();
  });
  const errors = action.error?.fields ?? {};
  return html`<${Dialog} title=${t("Connect a server")} onClose=${onClose}>
    <${Form} action=${action} submit=${tested ? t("Use this") : t("Test")} onCancel=${onClose} disabled=${!url.trim()}>
      <${Field} label=${t("Address")} value=${url} onInput=${set(setUrl)} placeholder="https://api.example.org/v1" hint=${t("Ollama, or any server with OpenAI’s API, such as vLLM, llama.cpp or LM Studio.")} error=${errors.url} required autofocus autocomplete="off" />
      <${Field} label=${t("Key")} type="password" value=${key} onInput=${set(setKey)} hint=${t("It is kept encrypted, and never shown again.")} error=${errors.key} optional autocomplete="off" />
      ${tested && html`<p role="status">${plural(tested.models.length, "It answers, and has one model.", "It answers, and has {n} models.")}</p>`}
      ${tested && !fixed && html`<${Field} as="select" label=${t("Model for answers")} value=${model} onInput=${setModel}>
        <option value="">${t("Leave it as it is")}</option>
        ${tested.chat_models.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}<//>`}
    <//>
  <//>`;
}
