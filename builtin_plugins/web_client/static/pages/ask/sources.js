/** What can be asked: pipelines, and knowledge bases through a pipeline of their own. */

import { api, everything } from "../../lib/api.js";
import { account, isOwn, ownFirst } from "../../lib/session.js";

const KEPT = "platform.ask";

/** Everything that the caller may ask. */
export async function loadSources(signal) {
  return sourcesOf(...(await Promise.all([everything(api.pipelines, { signal }), everything(api.knowledgeBases, { signal })])));
}

const sourcesOf = (pipelines, bases) => ({ pipelines, bases, alone: bases.filter((base) => !pipelineOf(base.id, pipelines)) });

const isForOne = (item) => item.knowledge_base_ids.length === 1;

/** Whether somebody else asks a knowledge base by it, and nobody with them: only administrators see it. */
const isOfAnother = (item) => isForOne(item) && item.visibility === "private" && !isOwn(item);

/** The pipeline with only this knowledge base, which is used to ask it. */
const pipelineOf = (base, pipelines) => pipelines.find((item) => isForOne(item) && item.knowledge_base_ids[0] === base && !isOfAnother(item));

/** The pipelines to choose from; one of another only if it is chosen already, as by a link. */
export const pipelinesOffered = ({ pipelines }, choice) => pipelines.filter((item) => !isOfAnother(item) || choice === `pipeline:${item.id}`);

/**
 * The initial choice: from the address, else the last one, else the first of the user's own, else the first. A pipeline
 * whose knowledge bases the user can't see answers nothing: it is last.
 */
export function firstChoice({ pipelines, alone }, wanted) {
  const [useful, useless] = [true, false].map((is) => pipelines.filter((item) => item.knowledge_base_ids.length > 0 === is));
  const known = [...ownFirst([...useful, ...alone]), ...useless].map((item) => `${item.knowledge_base_ids ? "pipeline" : "base"}:${item.id}`);
  const asked = [wanted, localStorage.getItem(KEPT)].map((choice) => throughPipeline(choice, pipelines)).find((choice) => known.includes(choice));
  return asked ?? known[0] ?? "";
}

/** The same choice, but for a knowledge base with its own pipeline, that pipeline. */
function throughPipeline(choice, pipelines) {
  const [kind, id] = choice?.split(":") ?? [];
  const own = kind === "base" && pipelineOf(id, pipelines);
  return own ? `pipeline:${own.id}` : choice;
}

/** The ids of the knowledge bases of this choice. */
export function basesOf(choice, { pipelines }) {
  const [kind, id] = choice.split(":");
  return kind === "base" ? [id] : (pipelines.find((item) => item.id === id)?.knowledge_base_ids ?? []);
}

export const rememberChoice = (choice) => localStorage.setItem(KEPT, choice);

/** What can be asked, with a pipeline for this choice: one is created for a knowledge base without. */
export async function withPipeline(choice, sources) {
  const [kind, id] = throughPipeline(choice, sources.pipelines).split(":");
  if (kind === "pipeline") return { sources, pipeline: sources.pipelines.find((item) => item.id === id) };
  const { name } = sources.bases.find((base) => base.id === id);
  const { pipeline_id, ...made } = await api.createPipeline({ body: { name, knowledge_base_ids: [id] } });
  const pipeline = { ...made, id: pipeline_id, owner_user_id: account.value.sub };
  return { sources: sourcesOf([...sources.pipelines, pipeline], sources.bases), pipeline };
}
