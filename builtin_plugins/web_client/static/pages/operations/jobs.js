/** The titles of jobs of the platform's own plugins; others have a title. */

import { t } from "../../lib/words.js";

const TITLES = {
  "rag.ingest_document": "Read a document",
  "rag.build_trees": "Build summary trees",
  "rag.find_contradictions": "Compare documents",
  "rag.propose_values": "Propose values of fields",
  "rag.reembed": "Change the embedding model",
  "rag.import_knowledge_base": "Import a knowledge base",
  "graph_rag.build_base": "Bring the graph of a knowledge base up to date",
  "evaluation.run": "Evaluate a knowledge base",
  "models.pull": "Pull a model",
  "plugin_registry.collect": "Collect a plugin's data",
  "platform_ops.back_up": "Back up",
  "platform_ops.restore": "Restore a backup",
  "platform_ops.drill": "Rehearse a restore",
};

export const titleOf = (job) => t(TITLES[job.kind] ?? job.title);
