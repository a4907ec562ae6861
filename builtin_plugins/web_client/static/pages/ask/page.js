/** Asking: a conversation with one's documents. */

import { html, useEffect, useMemo, useRef, useState } from "../../lib/html.js";
import { useResource } from "../../lib/resource.js";
import { query } from "../../lib/router.js";
import { t } from "../../lib/words.js";
import { Button, Failure, Head, Skeleton } from "../../parts/basics.js";
import { say } from "../../parts/layers.js";
import { Begin } from "./begin.js";
import { Composer } from "./composer.js";
import { answering, ask, startOver, turns } from "./conversation.js";
import { firstChoice, loadSources, pipelineOf, rememberChoice } from "./sources.js";
import { Turn } from "./turn.js";
import { Viewer } from "./viewer.js";

export default function Ask() {
  const sources = useResource(loadSources);
  const wanted = query.value.get("pipeline") ? `pipeline:${query.value.get("pipeline")}` : query.value.get("base") && `base:${query.value.get("base")}`;
  const [choice, setChoice] = useState("");
  const [shown, setShown] = useState(null);
  useEffect(() => {
    if (sources.data) setChoice((was) => was || firstChoice(sources.data, wanted));
  }, [sources.data]);
  useEffect(() => {
    if (sources.data && wanted) setChoice(firstChoice(sources.data, wanted));
  }, [wanted]);
  const send = async (question, settings) => {
    try {
      const pipeline = await pipelineOf(choice, sources.data);
      rememberChoice(choice);
      await ask(question, pipeline, settings);
    } catch (error) {
      say(error.message, "bad");
      throw error;
    }
  };
  if (!sources.data) {
    return html`<div class="page narrow"><${Failure} error=${sources.error} onRetry=${sources.reload} />${!sources.error && html`<${Skeleton} lines=${6} />`}</div>`;
  }
  if (!sources.data.bases.length && !turns.value.length) return html`<${Begin} onReady=${sources.reload} />`;
  return html`<div class=${shown ? "ask with-viewer" : "ask"}>
    <section class="talk" aria-label=${t("Conversation")}>
      <${Transcript} onShow=${setShown} />
      <${Composer} sources=${sources.data} choice=${choice} onChoose=${setChoice} onSend=${send} />
    </section>
    ${shown && html`<${Viewer} passage=${shown} onClose=${() => setShown(null)} />`}
  </div>`;
}

function Transcript({ onShow }) {
  const list = turns.value;
  const end = useRef(null);
  const last = list.at(-1);
  useEffect(() => {
    end.current?.scrollIntoView({ block: "end" });
  }, [list.length, last?.state, last?.text.length > 0]);
  const shown = useMemo(() => list.map((turn) => html`<${Turn} key=${turn.id} turn=${turn} onShow=${onShow} />`), [list]);
  return html`<div class="transcript">
    <div class="transcript-inside">
      ${
        list.length
          ? html`<${Head} title=${list[0].question.slice(0, 120)}><${Button} small icon="plus" disabled=${answering.value} onClick=${startOver}>${t("New conversation")}<//><//>`
          : html`<div class="hello"><h1>${t("What would you like to know?")}</h1><p class="muted">${t("Answers come from your documents alone, and each says where it stands.")}</p></div>`
      }
      ${shown}
      <div ref=${end}></div>
    </div>
  </div>`;
}
