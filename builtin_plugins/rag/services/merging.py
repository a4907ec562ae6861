"""One ranking out of what several knowledge bases found.

A hybrid score is relative to the best cosine of its own collection, so the best hit of a knowledge base about
something else would stand beside the best of all. Here the cosines are laid beside one another again. Those
of another embedding model mean something else: its hits are embedded once more, by the first model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from builtin_plugins.rag.models import KnowledgeBase
from builtin_plugins.rag.services.embedding import embed
from kernel.sdk import Hit, Platform, hybrid_weight

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Found:
    """What one knowledge base answered, best first."""

    base: KnowledgeBase
    hits: Sequence[Hit]


@dataclass(frozen=True)
class _Candidate:
    """A hit with the two parts of its score: its cosine, and what its words add."""

    hit: Hit
    cosine: float
    words: float


async def merged(
    platform: Platform, found: Sequence[Found], question: str, vector: Vector, k: int, *, hybrid: bool
) -> list[Hit]:
    """The `k` best of all; `vector` is the question's by the model of the first knowledge base.

    Raises ModelUnavailable when hits of another model can't be embedded again.
    """
    if len(found) == 1:
        return list(found[0].hits[:k])
    weight = hybrid_weight(question) if hybrid else None
    model = found[0].base.embedding_model
    candidates: list[_Candidate] = []
    for one in found:
        own = _candidates(one.hits, weight)
        if one.base.embedding_model != model:
            own = await _by_model(platform, model, vector, own)
        candidates += own
    return _ranked(candidates, weight)[:k]


def _candidates(hits: Sequence[Hit], weight: float | None) -> list[_Candidate]:
    if weight is None:
        return [_Candidate(hit, hit.score, 0.0) for hit in hits]
    best = _best(hit.cosine or 0.0 for hit in hits)
    return [
        _Candidate(hit, hit.cosine or 0.0, max(0.0, hit.score - weight * (hit.cosine or 0.0) / best))
        for hit in hits
    ]


async def _by_model(
    platform: Platform, model: str, vector: Vector, candidates: Sequence[_Candidate]
) -> list[_Candidate]:
    """The same candidates with their cosines by another model."""
    if not candidates:
        return []
    texts = [candidate.hit.point.text for candidate in candidates]
    cosines = np.dot((await embed(platform, model, texts, "passage")).vectors, vector).tolist()
    return [replace(candidate, cosine=cosine) for candidate, cosine in zip(candidates, cosines, strict=True)]


def _ranked(candidates: Sequence[_Candidate], weight: float | None) -> list[Hit]:
    best = _best(candidate.cosine for candidate in candidates)

    def score(one: _Candidate) -> float:
        return one.cosine if weight is None else weight * one.cosine / best + one.words

    hits = [replace(one.hit, cosine=one.cosine, score=score(one)) for one in candidates]
    return sorted(hits, key=lambda hit: -hit.score)


def _best(cosines: Iterable[float]) -> float:
    """What a hybrid score sets cosines in relation to (`kernel.stores.fusion`)."""
    best = max(cosines, default=0.0)
    return best if best > 0.0 else 1.0
