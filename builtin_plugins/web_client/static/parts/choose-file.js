/** A button to choose a file; passes on the JSON in it. */

import { html } from "../lib/html.js";
import { t } from "../lib/words.js";
import { say, sayError } from "./layers.js";

export function ChooseJson({ label, onChosen }) {
  const take = async (event) => {
    const [file] = event.target.files;
    event.target.value = "";
    if (!file) return;
    try {
      await onChosen(JSON.parse(await file.text()));
    } catch (error) {
      if (error instanceof SyntaxError) say(t("This file isn’t JSON."), "bad");
      else sayError(error);
    }
  };
  return html`<label class="button button-plain"><span>${label}</span><input class="hidden" type="file" accept=".json,application/json" onChange=${take} /></label>`;
}
