"""`raptor`: search the summaries of the documents' trees along with their passages.

Sarthi et al. 2024, "RAPTOR: Recursive Abstractive Processing for Tree-Organized Retrieval", with the search
over all levels at once ("collapsed tree"). rag builds the trees, as it reads documents. If no document has
one, only the passages are searched.
"""

from __future__ import annotations

from builtin_plugins.rag.api import QueryMethod, QuestionWork, SearchPlan


async def plan(work: QuestionWork) -> SearchPlan:
    """Search for the question on all levels."""
    return SearchPlan(work.question, trees=True)


RAPTOR = QueryMethod("raptor", "Searches summaries of documents, too.", plan=plan, thinks=False)
