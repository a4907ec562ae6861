/** The measures of a run, the most telling first, and how each is written. */

import { number } from "../../lib/words.js";

export const MEASURES = ["quality", "ndcg@10", "recall@5", "mrr", "contains", "refused_right", "refused_wrong", "citations_supported", "failed", "latency_ms", "tokens", "model_calls"];

const WHOLE = new Set(["latency_ms", "tokens"]);

/** Measures of which less is better. */
export const COSTS = new Set(["refused_wrong", "failed", "latency_ms", "tokens", "model_calls"]);

export const figure = (name, value) =>
  value === null || value === undefined ? "–" : number(value, { maximumFractionDigits: WHOLE.has(name) ? 0 : 3 });
