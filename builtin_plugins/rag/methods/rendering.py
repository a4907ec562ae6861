"""Passages and answers in the shape that clients read (wire-facts 11.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from builtin_plugins.rag.answering.passages import Passage
from builtin_plugins.rag.schemas import QueryAnswer, QueryRequest, Source

EXTRACTIVE = "extractive"


@dataclass(frozen=True)
class DraftAnswer:
    """An answer's text, the passages that are its sources, and the model that wrote it."""

    text: str
    passages: Sequence[Passage]
    model: str = EXTRACTIVE
    tokens: int | None = None
    notes: Sequence[str] = ()


def sources(passages: Sequence[Passage]) -> list[Source]:
    """The passages as sources; the first is cited as [1]."""
    return [Source(**asdict(passage)) for passage in passages]


def render(request: QueryRequest, draft: DraftAnswer) -> QueryAnswer:
    """The answer; its confidence is the mean score of its sources, 0.0 without any."""
    scores = [passage.score for passage in draft.passages]
    return QueryAnswer(
        answer=draft.text,
        sources=sources(draft.passages),
        confidence=round(sum(scores) / len(scores), 3) if scores else 0.0,
        model_used=draft.model,
        tokens_used=draft.tokens,
        method="standard",
        method_details=_details(request, draft.notes),
    )


def _details(request: QueryRequest, notes: Sequence[str]) -> dict[str, Any]:
    details: dict[str, Any] = {"retrieval": "hybrid" if request.hybrid else "dense"}
    if request.metadata_filter is not None:
        details["metadata_filter"] = request.metadata_filter.model_dump(exclude_none=True)
    if degraded := [*notes, *_ignored(request)]:
        details["degraded"] = degraded
    return details


def _ignored(request: QueryRequest) -> list[str]:
    """Capabilities that were asked for and that this server does not have."""
    asked = {
        "rerank": request.rerank,
        "compress": request.compress,
        "parent_context": request.parent_context,
        "conversation": request.conversation_id is not None,
    }
    return [f"{name}: not available on this server" for name, wanted in asked.items() if wanted]
