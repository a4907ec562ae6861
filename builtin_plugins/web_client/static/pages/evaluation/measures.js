/** The measures of a run, the most telling first, and how each is written. */

import { number, t } from "../../lib/words.js";

export const MEASURES = ["quality", "ndcg@10", "recall@5", "mrr", "contains", "refused_right", "refused_wrong", "citations_supported", "failed", "latency_ms", "tokens", "model_calls"];

const TITLES = {
  quality: "Quality",
  "ndcg@10": "nDCG@10",
  "recall@5": "Recall@5",
  mrr: "MRR",
  contains: "Contains the answer",
  refused_right: "Rightly refused",
  refused_wrong: "Wrongly refused",
  citations_supported: "Supported citations",
  latency_ms: "Time (ms)",
  tokens: "Tokens",
  model_calls: "Calls to the model",
};

/** The usual name of a measure. */
export const titleOf = (name) => t(TITLES[name] ?? name);

const WHOLE = new Set(["latency_ms", "tokens"]);

/** Measures where less is better. */
export const COSTS = new Set(["refused_wrong", "failed", "latency_ms", "tokens", "model_calls"]);

export const figure = (name, value) =>
  value === null || value === undefined ? "–" : number(value, { maximumFractionDigits: WHOLE.has(name) ? 0 : 3 });
