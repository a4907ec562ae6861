"""The method `standard`: retrieve once, then answer from the passages with citations.

With a model runtime the model writes the answer; without one, the passages' own sentences do, and
`model_used` says `extractive`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from builtin_plugins.rag.methods.events import Event
from builtin_plugins.rag.methods.extracted import extracted
from builtin_plugins.rag.methods.generated import begin, generated
from builtin_plugins.rag.models import KnowledgeBase
from builtin_plugins.rag.schemas import GenerationConfig, QueryRequest
from builtin_plugins.rag.services.retrieval import retrieve
from kernel.sdk import Platform


async def answer(
    platform: Platform,
    bases: Sequence[KnowledgeBase],
    request: QueryRequest,
    config: GenerationConfig,
) -> AsyncGenerator[Event, None]:
    """Yields Found, Pieces, Done. Raises Unavailable when embedding or generation fails."""
    retrieved = await retrieve(
        platform,
        bases,
        request.question,
        request.top_k,
        hybrid=request.hybrid is not False,
        metadata_filter=request.metadata_filter,
    )
    generation = begin(platform, bases, request, config, retrieved.passages)
    if generation is None:
        events = extracted(platform, bases, request, retrieved)
    else:
        events = generated(request, retrieved, generation)
    async with aclosing(events):
        async for event in events:
            yield event
