"""One ranking of what several knowledge bases found.

A hybrid score is relative to the best cosine of its own collection, so the best hit of an unrelated knowledge
base would rank with the best of all. Here the cosines themselves are compared. Those of different embedding
models are not comparable, so hits of other models are embedded again by the first model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from builtin_plugins.rag.models import KnowledgeBase
from builtin_plugins.rag.services.embedding import embed
from kernel.sdk import Embedded, Hit, Platform, hybrid_weight


@dataclass(frozen=True)
class Found:
    """The hits of one knowledge base, best first."""

    base: KnowledgeBase
    hits: Sequence[Hit]


async def merged(
    platform: Platform, found: Sequence[Found], question: str, asked: Embedded, k: int, *, hybrid: bool
) -> list[Hit]:
    """The `k` best of all; `asked` is the question, embedded by the first knowledge base's model.

    Dense scores are similarities on that model's scale.

    Raises ModelUnavailable when hits of another model can't be embedded again.
    """
    model = found[0].base.embedding_model
    hits: list[Hit] = []
    for one in found:
        own = list(one.hits)
        hits += own if one.base.embedding_model == model else await by_model(platform, model, asked, own)
    if hybrid and len(found) == 1:
        return hits[:k]
    return _ranked(hits, asked, hybrid_weight(question, asked.meaning) if hybrid else None)[:k]


async def by_model(platform: Platform, model: str, asked: Embedded, hits: Sequence[Hit]) -> list[Hit]:
    """The same hits with their cosines to `asked`, embedded again by `model`."""
    import numpy as np

    if not hits:
        return []
    made = await embed(platform, model, [hit.point.text for hit in hits], "passage")
    cosines: list[float] = np.dot(made.vectors, asked.vectors[0]).tolist()
    return [replace(hit, cosine=cosine) for hit, cosine in zip(hits, cosines, strict=True)]


async def as_asked(platform: Platform, model: str, question: Embedded, hits: Sequence[Hit]) -> list[Hit]:
    """The same hits with their cosines to the question, for a search that was aimed at another vector.

    The search itself returns these for the question's own model; other hits are embedded again.
    """
    others = [hit for hit in hits if hit.asked is None]
    again = iter(await by_model(platform, model, question, others))
    return [next(again) if hit.asked is None else replace(hit, cosine=hit.asked) for hit in hits]


def _ranked(hits: Sequence[Hit], asked: Embedded, weight: float | None) -> list[Hit]:
    """Rank by similarity; with a `weight`, by hybrid score (`kernel.stores.fusion`) relative to the best."""
    best = max((asked.similarity(hit.cosine) for hit in hits), default=0.0)
    best = best if best > 0.0 else 1.0

    def score(hit: Hit) -> float:
        similarity = max(0.0, asked.similarity(hit.cosine))
        if weight is None:
            return similarity
        return weight * similarity / best + (1.0 - weight) * (hit.words or 0.0)

    scored = (replace(hit, score=min(1.0, score(hit))) for hit in hits)
    return sorted(scored, key=lambda hit: (-hit.score, -hit.cosine))
