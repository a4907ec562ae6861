"""An answer by a model runtime: written from the passages, its citations checked as it comes."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from builtin_plugins.rag.answering import support
from builtin_plugins.rag.answering.citations import CitationFilter
from builtin_plugins.rag.answering.passages import Passage
from builtin_plugins.rag.answering.prompting import build_prompt
from builtin_plugins.rag.errors import GenerationFailed
from builtin_plugins.rag.methods.events import Done, Event, Found, Piece
from builtin_plugins.rag.methods.refusals import RefusalGate
from builtin_plugins.rag.methods.rendering import DraftAnswer, render, sources
from builtin_plugins.rag.models import KnowledgeBase
from builtin_plugins.rag.schemas import GenerationConfig, QueryRequest
from builtin_plugins.rag.services.retrieval import Retrieved
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import Platform, PlatformError, contracts

log = logging.getLogger("platform.rag.generation")

_TEMPERATURE = 0.7
_MAX_TOKENS = 2000


@dataclass(frozen=True)
class Generation:
    """A model's answer that is about to begin, and how many passages the model is shown."""

    stream: contracts.Generation
    passages_used: int


def begin(
    platform: Platform,
    bases: Sequence[KnowledgeBase],
    request: QueryRequest,
    config: GenerationConfig,
    passages: Sequence[Passage],
) -> Generation | None:
    """Ask for an answer; None without a model runtime. Nothing is sent before the first piece is awaited."""
    limit = platform.settings_of(RagSettings).answer_chars
    prompt = build_prompt(request.question, passages, max_chars=limit)
    stream = platform.hooks.ask_now(
        contracts.generate_text,
        platform=platform,
        messages=prompt.messages,
        model=request.llm_model or config.model or bases[0].llm_model,
        temperature=_TEMPERATURE if config.temperature is None else config.temperature,
        max_tokens=config.max_tokens or _MAX_TOKENS,
        options=config.model_extra or {},
    )
    return None if stream is None else Generation(stream, prompt.passages_used)


async def generated(
    request: QueryRequest, retrieved: Retrieved, generation: Generation
) -> AsyncGenerator[Event, None]:
    """Yields Found, Pieces, Done. Raises Unavailable when the model fails or says nothing.

    Found waits until the text is known to be an answer: a refusal has no sources.
    """
    passages = retrieved.passages
    if not _worth_asking(request.question, retrieved):
        await generation.stream.aclose()
        yield Found([])
        yield Piece(support.NOT_SUPPORTED)
        yield Done(render(request, DraftAnswer(support.NOT_SUPPORTED, [])))
        return
    gate, text, ends = RefusalGate(), list[str](), list[contracts.Generated]()
    async with aclosing(_checked(generation, gate, ends)) as pieces:
        async for piece in pieces:
            if not text:
                yield Found(sources([] if gate.refused else passages))
            text.append(piece)
            yield Piece(piece)
    draft = DraftAnswer(
        "".join(text).strip(),
        [] if gate.refused else passages,
        ends[-1].model if ends else "",
        ends[-1].tokens_used if ends else None,
    )
    yield Done(render(request, draft))


async def _checked(
    generation: Generation, gate: RefusalGate, ends: list[contracts.Generated]
) -> AsyncGenerator[str, None]:
    """The text in pieces with only true citations, the first not blank; `ends` gets the last word."""
    through, anything = CitationFilter(generation.passages_used), False
    async with aclosing(_guarded(generation.stream)) as stream:
        async for item in stream:
            if isinstance(item, str):
                shown = gate.feed(through.feed(item))
            else:
                ends.append(item)
                shown = gate.feed(through.close()) + gate.close()
            if shown:
                anything = True
                yield shown
    if not anything:
        raise GenerationFailed("The model gave an empty answer; raise max_tokens or choose another model")


async def _guarded(stream: contracts.Generation) -> contracts.Generation:
    async with aclosing(stream):
        try:
            async for item in stream:
                yield item
        except PlatformError:
            raise
        except Exception:  # boundary: another plugin's runtime may fail in any way
            log.exception("generation failed")
            raise GenerationFailed() from None


def _worth_asking(question: str, retrieved: Retrieved) -> bool:
    """Whether anything found speaks for an answer; a model given nothing to go by invents."""
    if not retrieved.passages:
        return False
    assessed = support.assess(question, retrieved.passages, cosines=retrieved.similarities)
    return assessed.supported or (assessed.evidence.similarity or 0.0) >= support.WEAK
