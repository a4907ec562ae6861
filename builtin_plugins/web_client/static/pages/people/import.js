/** Importing what was exported elsewhere: first what it would do, then, if confirmed, the import. */

import { html, useState } from "../../lib/html.js";
import { useAction } from "../../lib/resource.js";
import { t } from "../../lib/words.js";
import { Field, Form } from "../../parts/forms.js";
import { ChooseJson } from "../../parts/choose-file.js";
import { Dialog, say } from "../../parts/layers.js";
import { Json } from "../../parts/json.js";

const COLLISIONS = { skip: "Keep the existing one", rename: "Rename the new one", fail: "Cancel the import" };

/** `send({body, query})` is the call that imports into the team or organization. */
export function Import({ send, onDone }) {
  const [bundle, setBundle] = useState(null);
  return html`<${ChooseJson} label=${t("Import")} onChosen=${setBundle} />
    ${bundle && html`<${Agree} bundle=${bundle} send=${send} onDone=${onDone} onClose=${() => setBundle(null)} />`}`;
}

function Agree({ bundle, send, onDone, onClose }) {
  const [policy, setPolicy] = useState("skip");
  const [report, setReport] = useState(null);
  const request = (dry) => send({ body: { bundle, policy }, query: { dry_run: dry } });
  const action = useAction(async () => {
    if (!report) {
      setReport(await request(true));
      return;
    }
    await request(false);
    say(t("Imported"));
    onDone();
    onClose();
  });
  const choose = (value) => {
    setPolicy(value);
    setReport(null);
  };
  return html`<${Dialog} title=${t("Import")} onClose=${onClose} wide>
    <${Form} action=${action} submit=${report ? t("Import") : t("See what it would do")} onCancel=${onClose}>
      <${Field} as="select" label=${t("If a name is taken")} value=${policy} onInput=${choose}>${Object.entries(COLLISIONS).map(([value, title]) => html`<option key=${value} value=${value}>${t(title)}</option>`)}<//>
      ${report && html`<${Json} label=${t("What it would do")} value=${report} />`}
    <//>
  <//>`;
}
