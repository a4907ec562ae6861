"""`raptor`: search the summaries of the documents' trees along with their passages.

Sarthi et al. 2024, "RAPTOR: Recursive Abstractive Processing for Tree-Organized Retrieval", with the search
over all levels at once ("collapsed tree"). `trees` builds the trees.
"""

from __future__ import annotations

from builtin_plugins.rag.methods.method import Method
from builtin_plugins.rag.questions.question import Question
from builtin_plugins.rag.questions.ranked import Retrieved
from kernel.sdk import contracts


class Raptor(Method):
    """If no document has a tree, only the passages are searched."""

    name = "raptor"
    thinks = False

    async def plan(self, question: Question) -> contracts.SearchPlan:
        """Search for the question on all levels."""
        return contracts.SearchPlan(question.text, trees=True)

    async def retrieve(self, question: Question, plan: contracts.SearchPlan) -> Retrieved:
        """Passages and summaries."""
        found = await super().retrieve(question, plan)
        if question.trace.details.get("retrieval") == "raptor":
            counts = [await question.platform.vectors.count(base.tree_collection) for base in question.bases]
            if not any(counts):
                question.trace.degrade("raptor: no document has a tree, only passages were searched")
        return found
