/** A field of a form that is made from a JSON Schema. */

import { html, useState } from "../lib/html.js";
import { t } from "../lib/words.js";
import { Check, Field } from "./forms.js";

function typeOf(schema) {
  const found = schema.type ?? schema.anyOf?.find((item) => item.type !== "null")?.type;
  return Array.isArray(found) ? found.find((item) => item !== "null") : found;
}

/** The field of one property: its title, description and type. */
export function Parameter({ name, schema, required, value, onChange }) {
  const type = typeOf(schema);
  const shown = { label: schema.title ?? name, hint: schema.description, required, optional: !required };
  if (type === "boolean") return html`<${Check} label=${shown.label} hint=${shown.hint} checked=${value ?? schema.default ?? false} onChange=${onChange} />`;
  if (schema.enum) {
    return html`<${Field} as="select" ...${shown} value=${value ?? schema.default ?? ""} onInput=${onChange}>${schema.default === undefined && html`<option value=""></option>`}${schema.enum.map((item) => html`<option value=${item}>${schema.titles?.(item) ?? item}</option>`)}<//>`;
  }
  if (["integer", "number"].includes(type)) {
    return html`<${Field} ...${shown} type="number" step=${type === "integer" ? 1 : "any"} placeholder=${schema.default ?? ""} value=${value ?? ""} onInput=${(text) => onChange(text === "" ? "" : Number(text))} />`;
  }
  if (schema.format === "lines") return html`<${LinesParameter} shown=${shown} value=${value} onChange=${onChange} />`;
  if (["object", "array"].includes(type)) return html`<${JsonParameter} shown=${shown} onChange=${onChange} />`;
  return html`<${Field} ...${shown} placeholder=${schema.default ?? ""} value=${value ?? ""} onInput=${onChange} />`;
}

function LinesParameter({ shown, value, onChange }) {
  const [text, setText] = useState((value ?? []).join("\n"));
  const take = (typed) => {
    setText(typed);
    const lines = typed.split("\n").map((line) => line.trim()).filter(Boolean);
    onChange(lines.length ? lines : "");
  };
  return html`<${Field} as="textarea" ...${shown} value=${text} onInput=${take} />`;
}

function JsonParameter({ shown, onChange }) {
  const [text, setText] = useState("");
  const [wrong, setWrong] = useState("");
  const take = (typed) => {
    setText(typed);
    try {
      onChange(typed.trim() ? JSON.parse(typed) : "");
      setWrong("");
    } catch {
      setWrong(t("This is not JSON yet."));
    }
  };
  return html`<${Field} as="textarea" ...${shown} value=${text} onInput=${take} error=${wrong} />`;
}
