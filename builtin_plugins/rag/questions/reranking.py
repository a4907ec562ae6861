"""`rerank`: a closer look at more passages than asked for, by a reranking server or by their words."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, Field, SecretStr, ValidationError

from builtin_plugins.rag.questions.closeness import closeness
from builtin_plugins.rag.questions.question import Inquiry
from builtin_plugins.rag.questions.ranked import Ranked, Retrieved
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import OUTGOING, CallLimits, OutgoingClient, OutgoingError, Platform, ResourceKey

log = logging.getLogger("platform.rag.reranking")

LEXICAL_SHARE = 0.3
"""How much the words count beside the search's own score: enough to part near equals, which it leaves."""

_MOST_BYTES = 4 << 20
_MOST_CHARS = 4000


@dataclass(frozen=True)
class RerankServer:
    """A server with `/v1/rerank`, as Jina, llama.cpp and vLLM speak it."""

    client: OutgoingClient
    url: str
    model: str | None
    api_key: SecretStr | None

    async def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """How well each text fits, 0 to 1. Raises OutgoingError, ValueError."""
        key = self.api_key.get_secret_value() if self.api_key else None
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        documents = [text[:_MOST_CHARS] for text in texts]
        body = {"query": question, "documents": documents, "top_n": len(texts)}
        asked = body if self.model is None else {"model": self.model, **body}
        async with await self.client.call(
            "POST", f"{self.url.rstrip('/')}/v1/rerank", headers=headers, json=asked
        ) as reply:
            raw = await reply.read()
        if reply.status != 200:
            raise ValueError(f"it answered with status {reply.status}")
        return _read(raw, len(texts))


class _Result(BaseModel):
    index: Annotated[int, Field(ge=0)]
    relevance_score: Annotated[float, Field(allow_inf_nan=False)]


class _Results(BaseModel):
    results: list[_Result]


def _read(raw: bytes, count: int) -> list[float]:
    """Scores in the order of the texts. Logits are brought to 0..1 by the logistic curve."""
    try:
        results = _Results.model_validate(json.loads(raw)).results
    except (ValidationError, ValueError, RecursionError):
        raise ValueError("its answer is not a list of results") from None
    scores = {one.index: one.relevance_score for one in results}
    if sorted(scores) != list(range(count)):
        raise ValueError("it did not score every passage")
    if all(0.0 <= score <= 1.0 for score in scores.values()):
        return [scores[at] for at in range(count)]
    return [1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, scores[at])))) for at in range(count)]


RERANK_SERVER: ResourceKey[RerankServer | None] = ResourceKey("reranking server")


@asynccontextmanager
async def open_rerank_server(platform: Platform) -> AsyncIterator[RerankServer | None]:
    """The server that the settings name, or None."""
    settings = platform.settings_of(RagSettings)
    if settings.rerank_url is None:
        yield None
        return
    limits = CallLimits(settings.rerank_seconds, body_bytes=_MOST_BYTES)
    async with platform.resource(OUTGOING).client(
        "rag", named=[settings.rerank_url], limits=limits
    ) as client:
        yield RerankServer(client, settings.rerank_url, settings.rerank_model, settings.rerank_api_key)


async def reranked(inquiry: Inquiry, found: Retrieved, top_k: int) -> Retrieved:
    """The best passages in their new order; fewer than two stay as they are."""
    if len(found.items) < 2:
        return found
    server = inquiry.platform.resource(RERANK_SERVER)
    question, texts = inquiry.request.question, [passage.text for passage in found.passages]
    if server is not None:
        try:
            scores = await server.scores(question, texts)
        except (OutgoingError, ValueError) as error:
            log.warning("the reranking server failed: %s", error)
            inquiry.trace.degrade(
                "rerank: the reranking server failed; passages were reranked by their words"
            )
        else:
            inquiry.trace.details["reranker"] = "cross_encoder"
            return found.of(_ordered(found.items, scores, top_k))
    inquiry.trace.details["reranker"] = "lexical"
    near = await asyncio.to_thread(closeness, question, texts)
    mixed = [
        (1.0 - LEXICAL_SHARE) * max(item.passage.score, 0.0) + LEXICAL_SHARE * one
        for item, one in zip(found.items, near, strict=True)
    ]
    return found.of(_ordered(found.items, mixed, top_k))


def _ordered(items: Sequence[Ranked], scores: Sequence[float], top_k: int) -> list[Ranked]:
    best = sorted(zip(items, scores, strict=True), key=lambda pair: -round(pair[1], 6))[:top_k]
    return [item.scored(score, rerank=round(score, 6)) for item, score in best]
