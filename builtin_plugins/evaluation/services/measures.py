"""What is measured of one answer.

nDCG follows Järvelin and Kekäläinen (2002) with gains of 0 and 1; MRR Voorhees (1999). Each expectation is
met by the first suitable passage, and each passage meets at most one expectation.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from builtin_plugins.rag import api as rag

MEASURES = (
    "quality",
    "ndcg_10",
    "recall_5",
    "mrr",
    "contains",
    "refused_right",
    "refused_wrong",
    "citations_supported",
    "failed",
    "latency_ms",
    "tokens",
    "model_calls",
)


def usual_name(name: str) -> str:
    """The measure's usual name."""
    return {"ndcg_10": "ndcg@10", "recall_5": "recall@5"}.get(name, name)


@dataclass(frozen=True)
class Expected:
    """What a question's answer should be."""

    documents: Sequence[str]
    passages: Sequence[str]
    answers: Sequence[str]
    unanswerable: bool


def measure(expected: Expected, answered: rag.MeasuredAnswer, milliseconds: float) -> dict[str, float | None]:
    """Values by the names of `MEASURES`. `quality` is nDCG@10, 0 for a wrong refusal; for a question without
    an answer, 1 for a refusal. A failed answer is worth 0, and isn't a refusal.
    """
    gone = answered.failed is not None
    right = float(answered.refused) if expected.unanswerable and not gone else None
    wrong = None if expected.unanswerable or gone else float(answered.refused)
    ranked = answered.passages is not None and not expected.unanswerable
    ranks = ranks_of(expected, answered.passages or ()) if ranked else None
    by_rank = _rank_measures(ranks) if ranks is not None else dict.fromkeys(("ndcg_10", "recall_5", "mrr"))
    cited, supported = answered.citations, answered.citations_supported
    quality = 0.0 if gone or wrong else right if right is not None else by_rank["ndcg_10"]
    return {
        "quality": quality or 0.0,
        **by_rank,
        "contains": _contains(expected, answered) if expected.answers else None,
        "refused_right": right,
        "refused_wrong": wrong,
        "citations_supported": supported / cited if cited else None,
        "failed": float(gone),
        "latency_ms": round(milliseconds, 2),
        "tokens": float(answered.answer.tokens_used or 0),
        "model_calls": float(answered.model_calls),
    }


def ranks_of(expected: Expected, passages: Sequence[rag.Passage]) -> list[int | None]:
    """For each expectation the rank (from 1) of the passage that meets it, None for none.

    Compares passages if any are expected, else documents, else looks for a passage with one of the answers.
    """
    tests = _tests(expected)
    used_places: set[int] = set()
    ranks: list[int | None] = []
    for meets in tests:
        places = (at for at, one in enumerate(passages) if at not in used_places and meets(one))
        at = next(places, None)
        if at is not None:
            used_places.add(at)
        ranks.append(None if at is None else at + 1)
    return ranks


Test = Callable[[rag.Passage], bool]


def _tests(expected: Expected) -> list[Test]:
    if expected.passages:
        return [_is_passage(one) for one in expected.passages]
    if expected.documents:
        return [_is_of(one) for one in expected.documents]
    answers = [folded(one) for one in expected.answers]
    return [lambda passage: any(one in folded(passage.text) for one in answers)]


def _is_passage(id_or_text: str) -> Test:
    text = folded(id_or_text)
    return lambda passage: passage.chunk_id == id_or_text or text in folded(passage.text)


def _is_of(id_or_name: str) -> Test:
    name = folded(id_or_name)
    return lambda passage: passage.document_id == id_or_name or folded(passage.source) == name


def _rank_measures(ranks: Sequence[int | None]) -> dict[str, float | None]:
    met = [rank for rank in ranks if rank is not None]
    gained = sum(_gain(rank) for rank in met if rank <= 10)
    ideal = sum(_gain(rank) for rank in range(1, min(len(ranks), 10) + 1))
    return {
        "ndcg_10": gained / ideal,
        "recall_5": sum(rank <= 5 for rank in met) / len(ranks),
        "mrr": 1 / min(met) if met else 0.0,
    }


def _gain(rank: int) -> float:
    return 1 / math.log2(rank + 1)


def _contains(expected: Expected, answered: rag.MeasuredAnswer) -> float:
    text = folded(answered.answer.text)
    return float(any(folded(one) in text for one in expected.answers))


def folded(text: str) -> str:
    """For comparing: compatibility forms, case and white space folded."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
