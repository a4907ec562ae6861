"""How `auto` decides: what a question is like, and what follows from it (wire-facts 11.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from builtin_plugins.rag.api import QuestionWork
from kernel.sdk import Platform, ResourceKey

Complexity = Literal["simple", "moderate", "complex", "ambiguous"]
Strategy = Literal["basic", "hybrid", "hierarchical", "decomposition"]

UNSURE = 0.5
_MORE = 5
_RULES = (
    "You plan a search for an answer in documents. 'complexity': simple (one fact), moderate (several "
    "facts), complex (comparing, reasoning over several documents), ambiguous (unclear what is asked). "
    "'intent': one or two words. 'retrieval_strategy': basic, hybrid, hierarchical or decomposition. "
    "'top_k': how many passages. 'use_hyde': imagine an answer first, for vague questions. 'use_self_rag': "
    "check the answer. 'use_reranking', 'use_query_expansion': true or false. 'confidence': 0 to 1."
)


class RetrievalDecision(BaseModel):
    """What to do for a question; as JSON, it is also the form of the model's answer."""

    model_config = ConfigDict(extra="forbid")

    complexity: Complexity
    intent: Annotated[str, Field(max_length=60)]
    retrieval_strategy: Strategy
    top_k: Annotated[int, Field(ge=1, le=50)]
    use_hyde: bool
    use_self_rag: bool
    use_reranking: bool
    use_query_expansion: bool
    confidence: Annotated[float, Field(ge=0, le=1)]


class DecisionStats(BaseModel):
    """What the engine that chooses methods has decided since the server started."""

    available: bool = Field(description="Whether this server has such an engine.")
    total_decisions: int
    strategy_distribution: dict[str, int]
    complexity_distribution: dict[str, int]
    avg_confidence: float | None


class Decisions:
    """What was decided by the model in this process, for `GET /decision-stats`."""

    def __init__(self) -> None:
        self._strategies: Counter[str] = Counter()
        self._complexities: Counter[str] = Counter()
        self._confidence = 0.0

    def count(self, decision: RetrievalDecision) -> None:
        """Count a decision of the model."""
        self._strategies[decision.retrieval_strategy] += 1
        self._complexities[decision.complexity] += 1
        self._confidence += decision.confidence

    def stats(self) -> DecisionStats:
        """The totals over all methods."""
        total = self._strategies.total()
        return DecisionStats(
            available=True,
            total_decisions=total,
            strategy_distribution=dict(self._strategies),
            complexity_distribution=dict(self._complexities),
            avg_confidence=round(self._confidence / total, 3) if total else None,
        )


DECISIONS: ResourceKey[Decisions] = ResourceKey("decisions of auto")


@asynccontextmanager
async def open_decisions(_platform: Platform) -> AsyncIterator[Decisions]:
    """Open the resource `DECISIONS`."""
    yield Decisions()


async def decide(work: QuestionWork) -> RetrievalDecision:
    """Decide what to do for a question: by the model, else by the rule of its number of words."""
    return await _by_model(work) or of_complexity(work.kind, confidence=0.6)


async def _by_model(work: QuestionWork) -> RetrievalDecision | None:
    """The model's decision, counted. The model sees only the question, so no document can influence it."""
    decision = await work.judge(_RULES, work.question, RetrievalDecision)
    if decision is not None:
        work.caller.platform.resource(DECISIONS).count(decision)
    return None if decision is None else cautious(decision)


def of_complexity(complexity: Complexity, confidence: float) -> RetrievalDecision:
    """What suits a question of this kind."""
    strategies: dict[Complexity, tuple[Strategy, int]] = {
        "simple": ("basic", 5),
        "moderate": ("hybrid", 10),
        "complex": ("hierarchical", 15),
        "ambiguous": ("basic", 12),
    }
    strategy, top_k = strategies[complexity]
    decision = RetrievalDecision(
        complexity=complexity,
        intent="unknown",
        retrieval_strategy=strategy,
        top_k=top_k,
        use_hyde=complexity == "ambiguous",
        use_self_rag=False,
        use_reranking=complexity in ("moderate", "complex"),
        use_query_expansion=False,
        confidence=confidence,
    )
    return cautious(decision)


def cautious(decision: RetrievalDecision) -> RetrievalDecision:
    """If unsure, look at more passages and check the answer."""
    if decision.confidence >= UNSURE:
        return decision
    return decision.model_copy(update={"use_self_rag": True, "top_k": decision.top_k + _MORE})
