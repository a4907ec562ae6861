"""The method `standard`: retrieve once, then answer from the passages with citations.

With a model runtime the model writes the answer; without one, the passages' own sentences do, and
`model_used` says `extractive`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from builtin_plugins.rag.answering import extractive, support
from builtin_plugins.rag.answering.citations import CitationFilter
from builtin_plugins.rag.answering.passages import Passage
from builtin_plugins.rag.answering.prompting import build_prompt
from builtin_plugins.rag.methods.events import Done, Event, Found, Piece
from builtin_plugins.rag.models import KnowledgeBase
from builtin_plugins.rag.schemas import GenerationConfig, QueryAnswer, QueryRequest, Source
from builtin_plugins.rag.services.embedding import embed
from builtin_plugins.rag.services.retrieval import Retrieved, retrieve
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import Platform

EXTRACTIVE = "extractive"
_SENTENCES = 24
_TEMPERATURE = 0.7
_MAX_TOKENS = 2000


async def answer(
    platform: Platform,
    bases: Sequence[KnowledgeBase],
    request: QueryRequest,
    generation: GenerationConfig,
) -> AsyncGenerator[Event, None]:
    """Yields Found, Pieces, Done. Raises Unavailable when embedding or generation fails."""
    retrieved = await retrieve(
        platform,
        bases,
        request.question,
        request.top_k,
        hybrid=request.hybrid,
        metadata_filter=request.metadata_filter,
    )
    pieces = _generation(platform, bases, request, generation, retrieved.passages)
    if pieces is None:
        events = _extracted(platform, bases, request, retrieved)
    else:
        events = _generated(request, retrieved, pieces)
    async with aclosing(events):
        async for event in events:
            yield event


async def _extracted(
    platform: Platform, bases: Sequence[KnowledgeBase], request: QueryRequest, retrieved: Retrieved
) -> AsyncGenerator[Event, None]:
    """The passages' best sentences; told apart from a model by `model_used` and a degraded note."""
    passages = retrieved.passages
    question = request.question
    found = await asyncio.to_thread(extractive.candidates, question, passages, _SENTENCES)
    similarities = await _similarities(
        platform, bases[0].embedding_model, question, [one.text for one in found]
    )
    made = await asyncio.to_thread(extractive.compose, question, passages, found, similarities)
    kept = passages if made.supported else []
    yield Found(_sources(kept))
    yield Piece(made.text)
    notes = ["generation: no model runtime is configured, the answer quotes the passages"]
    yield Done(_render(request, kept, made.text, EXTRACTIVE, None, notes))


async def _similarities(
    platform: Platform, model: str, question: str, sentences: list[str]
) -> list[float] | None:
    if not sentences:
        return None
    vectors = (await embed(platform, model, [question, *sentences], "query")).vectors
    similarities: list[float] = np.dot(vectors[1:], vectors[0]).tolist()
    return similarities


@dataclass(frozen=True)
class _Generation:
    stream: Any
    passages_used: int


def _generation(
    platform: Platform,
    bases: Sequence[KnowledgeBase],
    request: QueryRequest,
    config: GenerationConfig,
    passages: Sequence[Passage],
) -> _Generation | None:
    """A model's answer that is about to begin; None without a model runtime."""
    prompt = build_prompt(
        request.question, passages, max_chars=platform.settings_of(RagSettings).answer_chars
    )
    stream = platform.hooks.first_now(
        "generate_text",
        messages=[asdict(message) for message in prompt.messages],
        model=request.llm_model or config.model or bases[0].llm_model,
        temperature=_TEMPERATURE if config.temperature is None else config.temperature,
        max_tokens=config.max_tokens or _MAX_TOKENS,
        options=config.model_extra or {},
    )
    return None if stream is None else _Generation(stream, prompt.passages_used)


async def _generated(
    request: QueryRequest, retrieved: Retrieved, generation: _Generation
) -> AsyncGenerator[Event, None]:
    passages = retrieved.passages
    if not _worth_asking(request.question, retrieved):
        await generation.stream.aclose()
        yield Found([])
        yield Piece(support.NOT_SUPPORTED)
        yield Done(_render(request, [], support.NOT_SUPPORTED, EXTRACTIVE, None, []))
        return
    yield Found(_sources(passages))
    through, text, summary = CitationFilter(generation.passages_used), [], dict[str, Any]()
    async with aclosing(generation.stream) as stream:
        async for item in stream:
            shown = through.feed(item) if isinstance(item, str) else through.close()
            if isinstance(item, Mapping):
                summary = dict(item)
            if shown:
                text.append(shown)
                yield Piece(shown)
    said = "".join(text).strip()
    kept = [] if said.startswith(support.NOT_SUPPORTED) else passages
    yield Done(_render(request, kept, said, str(summary.get("model", "")), summary.get("tokens_used"), []))


def _worth_asking(question: str, retrieved: Retrieved) -> bool:
    """Whether anything found speaks for an answer; a model given nothing to go by invents."""
    cosines = [cosine for cosine in retrieved.cosines if cosine is not None]
    if not retrieved.passages:
        return False
    assessed = support.assess(question, retrieved.passages, cosines=cosines or None)
    return assessed.supported or (assessed.evidence.similarity or 0.0) >= support.WEAK


def _sources(passages: Sequence[Passage]) -> list[Source]:
    return [Source(**asdict(passage)) for passage in passages]


def _render(
    request: QueryRequest,
    passages: Sequence[Passage],
    text: str,
    model: str,
    tokens: int | None,
    notes: Sequence[str],
) -> QueryAnswer:
    details: dict[str, Any] = {"retrieval": "hybrid" if request.hybrid else "dense"}
    if request.metadata_filter is not None:
        details["metadata_filter"] = request.metadata_filter.model_dump(exclude_none=True)
    degraded = [*notes, *_ignored(request)]
    if degraded:
        details["degraded"] = degraded
    scores = [passage.score for passage in passages]
    return QueryAnswer(
        answer=text,
        sources=_sources(passages),
        confidence=round(sum(scores) / len(scores), 3) if scores else 0.0,
        model_used=model,
        tokens_used=tokens,
        method="standard",
        method_details=details,
    )


def _ignored(request: QueryRequest) -> list[str]:
    """Capabilities that were asked for and that this server does not have."""
    asked = {
        "rerank": request.rerank,
        "compress": request.compress,
        "parent_context": request.parent_context,
        "conversation": request.conversation_id is not None,
    }
    return [f"{name}: not available on this server" for name, wanted in asked.items() if wanted]
