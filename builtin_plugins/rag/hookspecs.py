"""Hooks that the RAG plugin brings."""

from __future__ import annotations

from collections.abc import Sequence

from kernel.sdk import Caller, contracts, hookspec


@hookspec.declaration
def register_parsers() -> Sequence[contracts.DocumentParser]:
    """Parsers for more document types. Those of plugins are asked before the built-in ones."""


@hookspec.declaration
def register_methods() -> Sequence[contracts.QueryMethod]:
    """Further methods of answering. A name that is taken, or that another plugin has declared, is refused."""


@hookspec.all
def enhance_ranking(
    caller: Caller,
    question: str,
    passages: Sequence[contracts.CitedPassage],
    scope: contracts.RankingScope,
) -> Sequence[contracts.RankedPassage] | None:
    """New scores for passages of a ranking, and passages that it lacks, each with the way to it.

    Asked for a question or a search with `graph: true`, before reranking. `passages` come best first; those
    that the answer leaves out keep their scores. Passages outside `scope` are dropped. An implementation that
    fails or takes longer than `PLATFORM_RAG_ENHANCE_SECONDS` is skipped and named in
    `method_details.degraded`. With several, each gets what the one before made.
    """
