"""Ingest many small texts at once: one parser process, batches across documents, one commit.

Anything unusual is left to the ingestion of a single document (`ingest`), which also reports what is wrong
with it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.documents.api import (
    PARSER_PROCESSES,
    PARSERS,
    PLAIN_TEXT_PARSERS,
    Chunk,
    Parser,
    SmallText,
    chunk,
    parse_small,
    subject_of,
)
from builtin_plugins.inference.api import Embedded
from builtin_plugins.rag.metadata.publishing import Properties, settle_metadata, with_language, with_validity
from builtin_plugins.rag.models import Document, KnowledgeBase
from builtin_plugins.rag.services.attempts import IngestPayload, is_wanted, path_of
from builtin_plugins.rag.services.embedding import embed
from builtin_plugins.rag.services.ingest import complete
from builtin_plugins.rag.services.loading import context_of, languages_of, payload_of, point_of
from builtin_plugins.rag.services.records import OriginalLost, note_outcome, original
from builtin_plugins.rag.services.versions import hold_earlier
from builtin_plugins.rag.settings import RagSettings
from builtin_plugins.vectors.api import VECTORS, Point, searched_text
from kernel.sdk import Platform, ResourceKey, Unit
from kernel.sdk.jobs import Together

_MOST_AT_ONCE = 24
"""Passages per call of the engine: a few hundred milliseconds of one core."""


@dataclass(frozen=True)
class _Small:
    """A document being ingested, with its job."""

    job_id: str
    document: Document
    base: KnowledgeBase
    chunks: Sequence[Chunk] = ()
    language: str | None = None
    subject: str = ""
    properties: Properties = field(default_factory=dict)

    def payload_of(self, item: Chunk) -> dict[str, Any]:
        """What is stored with one of its passages."""
        return payload_of(item, self.language, context_of(self.subject, item.sections))


class EmbeddingLine:
    """Embeds the passages of many documents, first come, first served.

    In parallel, all groups would end together, and the engine would be idle while they write and parse. Two
    calls run at a time: one is tokenized, possibly of the next group, while the engine computes the other.
    Each model has its own line, so that a slow endpoint delays nobody else.
    """

    def __init__(self) -> None:
        self._turns = defaultdict[str, asyncio.Lock](asyncio.Lock)
        self._places = defaultdict[str, asyncio.Semaphore](partial(asyncio.Semaphore, 2))

    async def embed(self, platform: Platform, model: str, texts: Sequence[str]) -> Embedded:
        """One vector for each text. Raises what `embed` raises."""
        import numpy as np

        size = -(
            -len(texts) // -(-len(texts) // _MOST_AT_ONCE)
        )  # equal sizes, so that no call has only a few passages
        batches = [texts[start : start + size] for start in range(0, len(texts), size)]
        calls: list[asyncio.Task[Embedded]] = []
        places = self._places[model]
        try:
            async with self._turns[model]:
                for batch in batches:
                    await places.acquire()
                    if any(map(_has_failed, calls)):
                        places.release()
                        break
                    calls.append(asyncio.create_task(embed(platform, model, batch, "passage")))
                    calls[-1].add_done_callback(lambda _: places.release())
            parts = await asyncio.gather(*calls)
        finally:
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
        return replace(parts[0], vectors=np.concatenate([part.vectors for part in parts]))


def _has_failed(call: asyncio.Task[Embedded]) -> bool:
    return call.done() and (call.cancelled() or call.exception() is not None)


EMBEDDING_LINE: ResourceKey[EmbeddingLine] = ResourceKey("the line to embed many small documents")


async def ingest_small(platform: Platform, jobs: Together[IngestPayload]) -> None:
    """Bring as many of these documents as possible to `completed`."""
    documents, deleted = await platform.database.read(_load, jobs.payloads)
    for job_id in deleted:
        jobs.done(job_id)
    chunked = list(await _chunked(platform, documents))
    by_model = groupby(sorted(chunked, key=_model), key=_model)
    work = [_embedded(platform, jobs, model, list(some)) for model, some in by_model]
    for failed in filter(None, await asyncio.gather(*work, return_exceptions=True)):
        raise failed  # only after the other models are through


async def _embedded(
    platform: Platform, jobs: Together[IngestPayload], model: str, small: Sequence[_Small]
) -> None:
    languages = await languages_of(platform, [one.chunks[0].text for one in small])
    documents = [replace(one, language=language) for one, language in zip(small, languages, strict=True)]
    texts = [searched_text(item.text, one.payload_of(item)) for one in documents for item in one.chunks]
    embedded = await platform.resource(EMBEDDING_LINE).embed(platform, model, texts)
    await platform.database.write(_store, platform, jobs, documents, embedded)


def _model(small: _Small) -> str:
    return small.base.embedding_model


def _version(small: _Small) -> int:
    return small.document.version


def _base(small: _Small) -> str:
    return small.base.id


def _collection(small: _Small) -> str:
    return small.base.collection


def _load(session: Session, jobs: Mapping[str, IngestPayload]) -> tuple[list[_Small], list[str]]:
    """The documents that are still wanted, and the jobs of deleted ones. Cancelled documents are in neither:
    their jobs run alone and report it.
    """
    ids = {payload.document_id for payload in jobs.values()}
    query = (
        select(Document, KnowledgeBase)
        .join(KnowledgeBase, KnowledgeBase.id == Document.knowledge_base_id)
        .where(Document.id.in_(ids))
    )
    rows = {document.id: (document, base) for document, base in session.execute(query)}
    small = [
        _Small(job_id, *rows[payload.document_id])
        for job_id, payload in jobs.items()
        if payload.document_id in rows and is_wanted(rows[payload.document_id][0], payload.attempt)
    ]
    return small, [job_id for job_id, payload in jobs.items() if payload.document_id not in rows]


async def _chunked(platform: Platform, documents: Sequence[_Small]) -> Iterator[_Small]:
    parsers = platform.resource(PARSERS)
    fit: list[_Small] = []
    files: list[tuple[Path, Parser]] = []
    for small in documents:
        parser = parsers.for_media_type(small.document.content_type)
        if parser in PLAIN_TEXT_PARSERS:
            with suppress(OriginalLost):  # its own job says so
                files.append((await original(platform, small.document), parser))
                fit.append(small)
    if not fit:
        return iter(())
    settings = platform.settings_of(RagSettings)
    parsed = await parse_small(platform.resource(PARSER_PROCESSES), files, settings.parse_limits(large=False))
    return _cut(zip(fit, parsed, strict=True), settings.max_chunks)


def _cut(parsed: Iterable[tuple[_Small, SmallText | None]], most: int) -> Iterator[_Small]:
    for small, text in parsed:
        if text is None:
            continue
        chunks = list(chunk(text.blocks, small.base.chunk_size, small.base.chunk_overlap))
        if 0 < len(chunks) <= most:
            subject = subject_of(small.document.filename, (item.text for item in chunks))
            properties = with_validity(text.properties, (item.text for item in chunks))
            yield replace(small, chunks=chunks, subject=subject, properties=properties)


def _store(
    unit: Unit,
    platform: Platform,
    jobs: Together[IngestPayload],
    small: Sequence[_Small],
    embedded: Embedded,
) -> None:
    """Stage and publish everything, except what was deleted, changed or cancelled meanwhile."""
    documents, vectors = _hold(unit, small), platform.resource(VECTORS)
    cancelled = jobs.cancelled(unit)
    for text in small:
        if text.job_id in cancelled:
            documents.pop(text.document.id, None)
    current = [text for text in small if text.document.id in documents]
    for text in sorted(current, key=_version, reverse=True):
        hold_earlier(unit, documents[text.document.id])
    for collection, points in _points(small, embedded, documents).items():
        vectors.ensure(unit, collection, embedded.vectors.shape[1], embedded.engine)
        vectors.stage(unit, collection, points)
    for collection, some in groupby(sorted(current, key=_collection), key=_collection):
        vectors.publish(unit, collection, *(text.document.id for text in some))
    for base_id, some in groupby(sorted(current, key=_base), key=_base):
        pairs = [
            (documents[text.document.id], with_language(text.properties, text.language)) for text in some
        ]
        settle_metadata(unit, base_id, pairs)
    results: dict[str, str | None] = {}
    for text in sorted(current, key=_version):  # a newer version replaces older ones that are read with it
        document = documents[text.document.id]
        complete(unit, platform, document, text.base, len(text.chunks), None)
        results[text.job_id] = path_of(document)
    if results:
        note_outcome(unit, "success", len(results))
    jobs.close(unit, results)


def _points(
    small: Sequence[_Small], embedded: Embedded, locked: Collection[str]
) -> Mapping[str, Sequence[Point]]:
    """The passages of locked documents, by collection: storing them together halves the cost."""
    import numpy as np

    ends = np.cumsum([len(text.chunks) for text in small])
    points = defaultdict[str, list[Point]](list)
    for text, rows in zip(small, np.split(embedded.vectors, ends[:-1]), strict=True):
        if text.document.id in locked:
            pairs = zip(text.chunks, rows, strict=True)
            points[text.base.collection] += [
                point_of(text.document.id, item, row, text.payload_of(item)) for item, row in pairs
            ]
    return points


def _hold(unit: Unit, small: Sequence[_Small]) -> dict[str, Document]:
    """Lock knowledge bases, then documents, so that none can be deleted before the commit."""
    bases = sorted({one.base.id for one in small})
    base_query = select(KnowledgeBase.id, KnowledgeBase.revision).where(KnowledgeBase.id.in_(bases))
    base_query = base_query.order_by(KnowledgeBase.id).with_for_update(read=True, key_share=True)
    revisions = {row.id: row.revision for row in unit.session.execute(base_query)}
    ids = [one.document.id for one in small if revisions.get(one.base.id) == one.base.revision]
    query = select(Document).where(Document.id.in_(ids), Document.status == "processing")
    rows = unit.session.scalars(query.order_by(Document.id).with_for_update())
    return {row.id: row for row in rows}
