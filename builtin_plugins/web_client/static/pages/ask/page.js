/** Asking: a conversation with the user's documents. */

import { html, useEffect, useMemo, useRef, useState } from "../../lib/html.js";
import { useResource } from "../../lib/resource.js";
import { go, path, query } from "../../lib/router.js";
import { t } from "../../lib/words.js";
import { Failure, Skeleton, Unshown } from "../../parts/basics.js";
import { sayError } from "../../parts/layers.js";
import { attachments } from "./attachments.js";
import { Begin } from "./begin.js";
import { Composer } from "./composer.js";
import { ask, current, kept, openConversation, startOver, turns } from "./conversation.js";
import { ConversationHead } from "./head.js";
import { chosenModel } from "./models.js";
import { basesOf, firstChoice, loadSources, rememberChoice, withPipeline } from "./sources.js";
import { Suggested } from "./suggested.js";
import { Turn } from "./turn.js";
import { Viewer } from "./viewer.js";

export default function Ask({ conversation }) {
  const sources = useResource(loadSources);
  const opened = useResource((signal) => (conversation ? openConversation(conversation, signal) : Promise.resolve()), [conversation]);
  const wanted = query.value.get("pipeline") ? `pipeline:${query.value.get("pipeline")}` : query.value.get("base") && `base:${query.value.get("base")}`;
  const [chosen, setChoice] = useState("");
  const [shown, setShown] = useState(null);
  // Not in an effect, which runs after the composer is shown: a quick question would get lost.
  const choice = chosen || (sources.data ? firstChoice(sources.data, wanted) : "");
  useEffect(() => {
    if (!conversation && current.value && kept.value) startOver();
  }, [conversation]);
  useEffect(() => {
    const last = turns.value.at(-1);
    if (sources.data && last) setChoice(firstChoice(sources.data, `pipeline:${last.pipeline.id}`));
  }, [sources.data, opened.loading]);
  useEffect(() => {
    if (sources.data && wanted) setChoice(firstChoice(sources.data, wanted));
  }, [wanted]);
  const send = async (question, settings) => {
    try {
      const { sources: all, pipeline } = await withPipeline(choice, sources.data);
      sources.set(all);
      rememberChoice(`pipeline:${pipeline.id}`);
      setChoice(`pipeline:${pipeline.id}`);
      const answered = ask(question, pipeline, settings);
      if (kept.value && path.value !== `/ask/${current.value}`) go(`/ask/${current.value}`, { replace: true });
      await answered;
    } catch (error) {
      sayError(error);
      throw error;
    }
  };
  if (!sources.data) {
    return html`<div class="page narrow"><${Failure} error=${sources.error} onRetry=${sources.reload} />${!sources.error && html`<${Skeleton} lines=${6} />`}</div>`;
  }
  if (!sources.data.bases.length && !turns.value.length) return html`<${Begin} onReady=${sources.reload} />`;
  return html`<div class=${shown ? "ask with-viewer" : "ask"}>
    <section class="talk" aria-label=${t("Conversation")}>
      ${opened.error ? html`<div class="transcript"><div class="transcript-inside"><${Unshown} error=${opened.error} onRetry=${opened.reload} /></div></div>` : html`<${Transcript} onShow=${setShown} bases=${basesOf(choice, sources.data)} onAsk=${(question) => send(question, chosenModel.value ? { llm_model: chosenModel.value } : {}).catch(() => {})} />`}
      <${Composer} conversation=${conversation} sources=${sources.data} choice=${choice} onChoose=${setChoice} onSend=${send} />
    </section>
    ${shown && html`<${Viewer} passage=${shown} onClose=${() => setShown(null)} />`}
  </div>`;
}

function Transcript({ onShow, bases, onAsk }) {
  const list = turns.value;
  const end = useRef(null);
  const last = list.at(-1);
  useEffect(() => {
    end.current?.scrollIntoView({ block: "end" });
  }, [list.length, last?.state, last?.text.length > 0]);
  const shown = useMemo(() => list.map((turn, at) => html`<${Turn} key=${turn.id} turn=${turn} onShow=${onShow} isFirst=${at === 0} />`), [list]);
  return html`<div class="transcript">
    <div class="transcript-inside">
      ${
        list.length
          ? html`<${ConversationHead} />`
          : html`<div class="hello"><h1>${t("What would you like to know?")}</h1><p class="muted">${t("Answers come from your documents alone, and each names its sources.")}</p>${attachments.value.length === 0 && html`<${Suggested} bases=${bases} onAsk=${onAsk} />`}</div>`
      }
      ${shown}
      <p class="hidden" role="status">${last?.state === "done" && !last.stored && t("The answer is ready.")}</p>
      <div ref=${end}></div>
    </div>
  </div>`;
}
