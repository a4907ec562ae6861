/** A rating of an answer: a thumb, and a comment. */

import { html, useState } from "../../lib/html.js";
import { useAction } from "../../lib/resource.js";
import { t } from "../../lib/words.js";
import { Button } from "../../parts/basics.js";
import { Field, Form } from "../../parts/forms.js";
import { say, sayError } from "../../parts/layers.js";
import { rate, turnIdOf } from "./conversation.js";

const LONGEST = 2000;

export function Thumbs({ turn }) {
  const [asking, setAsking] = useState(false);
  if (turnIdOf(turn) === undefined) return null;
  const press = async (value) => {
    const rating = turn.rating === value ? null : value;
    try {
      await rate(turn, rating);
      setAsking(rating !== null);
    } catch (error) {
      sayError(error);
    }
  };
  const thumb = (value, icon, label) => html`<${Button} kind="quiet" small icon=${icon} aria-label=${label} aria-pressed=${turn.rating === value} class=${turn.rating === value ? "pressed" : ""} onClick=${() => press(value)} />`;
  return html`${thumb("up", "up_thumb", t("Good answer"))}${thumb("down", "down_thumb", t("Bad answer"))}
    ${turn.rating && !asking && html`<${Button} kind="link" onClick=${() => setAsking(true)}>${turn.comment ? t("Change the comment") : t("Say why")}<//>`}
    ${turn.rating && asking && html`<${Why} turn=${turn} onClose=${() => setAsking(false)} />`}`;
}

function Why({ turn, onClose }) {
  const [text, setText] = useState(turn.comment ?? "");
  const action = useAction(async () => {
    await rate(turn, turn.rating, text.trim());
    onClose();
    say(t("Thank you"));
  });
  const label = turn.rating === "up" ? t("What was good?") : t("What was wrong or missing?");
  return html`<div class="why"><${Form} action=${action} submit=${t("Send")} onCancel=${onClose}>
    <${Field} as="textarea" rows="2" label=${label} hint=${t("Whoever evaluates these documents reads it with the question.")} value=${text} onInput=${setText} maxlength=${LONGEST} optional autofocus />
  <//></div>`;
}
