/** What can be asked: pipelines, and knowledge bases through a pipeline of their own. */

import { api } from "../../lib/api.js";
import { isOwn } from "../../lib/session.js";

const KEPT = "platform.ask";

/** Everything that the caller may ask. */
export async function loadSources(signal) {
  const query = { limit: 500 };
  const [pipelines, bases] = await Promise.all([api.pipelines({ query, signal }), api.knowledgeBases({ query, signal })]);
  const covered = new Set(pipelines.items.filter((item) => item.knowledge_base_ids.length === 1).map((item) => item.knowledge_base_ids[0]));
  return {
    pipelines: pipelines.items,
    bases: bases.items,
    alone: bases.items.filter((base) => !covered.has(base.id)),
  };
}

/** The choice to begin with: the one of the address, the last one, the first of one's own, the first one. */
export function firstChoice({ pipelines, alone }, wanted) {
  const all = [...pipelines.map((item) => ["pipeline", item]), ...alone.map((base) => ["base", base])];
  const known = [...all.filter(([, item]) => isOwn(item)), ...all].map(([kind, { id }]) => `${kind}:${id}`);
  const asked = [wanted, localStorage.getItem(KEPT)].find((choice) => known.includes(choice));
  return asked ?? known[0] ?? "";
}

export const rememberChoice = (choice) => localStorage.setItem(KEPT, choice);

/** The pipeline of a choice; a knowledge base that has none gets one. */
export async function pipelineOf(choice, { pipelines, bases }) {
  const [kind, id] = choice.split(":");
  if (kind === "pipeline") return pipelines.find((item) => item.id === id);
  return pipelineFor(bases.find((base) => base.id === id), pipelines);
}

export async function pipelineFor(base, pipelines) {
  const own = pipelines.find((item) => item.knowledge_base_ids.length === 1 && item.knowledge_base_ids[0] === base.id);
  if (own) return own;
  const made = await api.createPipeline({ body: { name: base.name, knowledge_base_ids: [base.id] } });
  return { id: made.pipeline_id, name: made.name, knowledge_base_ids: made.knowledge_base_ids };
}
