/** A button to choose a file; passes on the JSON in it. */

import { html } from "../lib/html.js";
import { t } from "../lib/words.js";
import { say } from "./layers.js";

export function ChooseJson({ label, onChosen }) {
  const take = async (event) => {
    const [file] = event.target.files;
    event.target.value = "";
    if (!file) return;
    try {
      await onChosen(JSON.parse(await file.text()));
    } catch (error) {
      say(error instanceof SyntaxError ? t("This file isn’t JSON.") : error.message, "bad");
    }
  };
  return html`<label class="button button-plain"><span>${label}</span><input class="hidden" type="file" accept=".json,application/json" onChange=${take} /></label>`;
}
