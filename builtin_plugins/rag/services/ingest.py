"""The way of a document: parse, cut, embed, stage, then show all of it at once.

The job may be killed anywhere. Parsing and cutting are deterministic and a passage's id follows from its
place, so a second run goes on after the passages that are written, and nothing is there twice. Searches see
the passages with the commit that makes the document `completed`.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import NoReturn

from pydantic import BaseModel
from sqlalchemy import Select, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from builtin_plugins.rag.chunking import Chunk, chunk
from builtin_plugins.rag.events import DocumentIngested
from builtin_plugins.rag.models import Document, KnowledgeBase
from builtin_plugins.rag.parsing import Parser, ParserUnavailable, UnparsableDocument, read_blocks
from builtin_plugins.rag.parsing.blocks import SlowDocument, unread_pages
from builtin_plugins.rag.parsing.protocol import last_place
from builtin_plugins.rag.parsing.runner import ParsedDocument, limits_of, parse
from builtin_plugins.rag.services.embedding import embed, engine_changed
from builtin_plugins.rag.services.languages import languages_of
from builtin_plugins.rag.services.outcomes import note_outcome
from builtin_plugins.rag.services.parsers import PARSER_PROCESSES, PARSERS
from builtin_plugins.rag.services.places import place_of
from builtin_plugins.rag.services.progress import ReadingProgress
from builtin_plugins.rag.settings import RagSettings
from builtin_plugins.rag.trees.job import queue_one
from kernel.sdk import (
    LANGUAGE,
    Embedded,
    EngineMismatch,
    JobFailed,
    JobMoved,
    Platform,
    Point,
    Progress,
    Scope,
    Unit,
    utc_now,
)

log = logging.getLogger("platform.rag.ingest")

BATCH = 96
UNDER_WAY = 2
"""Batches of one document that are embedded at once."""
CANCELLED = "Processing was cancelled. Retry it, or upload the file again, to start over."
_LOOK_EVERY = 1.0  # seconds, while a document is parsed
LARGE_PASSAGES = 500
"""Documents with more passages wait in a lane of their own."""
_NO_PARSER = (
    "This server currently has no parser for {}. Install or repair the plugin that reads it, "
    "then upload the file again."
)
_NAMESPACE = uuid.UUID("6d0ad5a6-8a0d-4f0e-9a52-0f3b6f4f1c9e")


class IngestPayload(BaseModel):
    """Which document to ingest. `large` says that it waits in the lane of those already, `depth` how
    many documents it came out of.
    """

    document_id: str
    large: bool = False
    depth: int = 0


class _Large(Exception):
    """Embedding the document will take long."""


class _Reembedded(Exception):
    """The knowledge base has vectors of another model by now: what was staged is gone."""


class _Gone(Exception):
    """The document was deleted, cancelled or started over in the meantime: this run is over."""


async def ingest(
    platform: Platform, payload: IngestPayload, progress: Progress, left_out: str | None = None
) -> str | None:
    """Bring a document from `processing` to `completed` or `failed`; answers its path.

    `left_out` says which of the files inside did not become documents.
    """
    found = await platform.database.read(load, payload.document_id)
    if found is None:
        return None
    document, base = found
    path = path_of(document)
    try:
        await Ingestion(platform, document, base, progress, payload, left_out).run()
    except _Large:
        raise JobMoved("large", payload.model_copy(update={"large": True})) from None
    except _Reembedded:
        return await ingest(platform, payload, progress, left_out)
    except _Gone:
        log.info("document %s was deleted, cancelled or started over while it was ingested", document.id)
    except UnparsableDocument as error:
        log.info("document %s can't be parsed: %s", document.id, error.reason or error.code)
        await _fail_finally(platform, document, error.detail)
    except ParserUnavailable as error:
        log.error("document %s: %s", document.id, error)
        await _fail_finally(platform, document, _NO_PARSER.format(document.content_type))
    except EngineMismatch as error:
        changed = engine_changed(base.embedding_model, error)
        log.error("document %s: %s", document.id, changed)
        await _fail_finally(platform, document, str(changed.detail))
    return path


def path_of(document: Document) -> str:
    """Where the document is found."""
    return f"/v1/rag/knowledge-bases/{document.knowledge_base_id}/documents/{document.id}"


async def give_up(platform: Platform, payload: IngestPayload, reason: str) -> None:
    """The job was given up: say so in the document."""
    await give_up_document(platform, payload.document_id, reason)


async def give_up_document(platform: Platform, document_id: str, reason: str) -> None:
    """The same where only the document is known: what was stored for the job can't be read."""
    detail = f"The document could not be processed: {reason}. Upload it again to try once more."
    await fail(platform, document_id, detail)


async def cancelled(platform: Platform, payload: IngestPayload) -> None:
    """The job was cancelled: say so in the document."""
    await fail(platform, payload.document_id, CANCELLED)


def readable_documents(scope: Scope) -> Select[str]:
    """The ids of the documents that a scope sees: those of the knowledge bases that it sees."""
    seen = select(Document.id).join(KnowledgeBase, KnowledgeBase.id == Document.knowledge_base_id)
    return seen.where(scope.sees(KnowledgeBase))


async def _fail_finally(platform: Platform, document: Document, detail: str) -> NoReturn:
    await platform.database.write(_fail, platform, document.id, detail, document.uploaded_at)
    raise JobFailed(detail)


async def fail(platform: Platform, document_id: str, detail: str) -> None:
    """Mark a document `failed` and remove its staged data."""
    await platform.database.write(_fail, platform, document_id, detail)


def _fail(
    unit: Unit, platform: Platform, document_id: str, detail: str, attempt: datetime | None = None
) -> None:
    """`attempt` is the time at which it was uploaded or started over; another attempt is left alone."""
    document: Document | None = unit.session.get(Document, document_id, with_for_update=True)
    if document is None or document.status != "processing" or attempt not in (None, document.uploaded_at):
        return
    fail_in(unit, platform, document, detail)


def fail_in(unit: Unit, platform: Platform, document: Document, detail: str) -> None:
    """Mark a document `failed`, with the unit, and remove what was staged of it. It must be locked."""
    document.status, document.error, document.chunk_count = "failed", detail, 0
    document.completed_at = utc_now()
    platform.vectors.remove_group(unit, f"rag:{document.knowledge_base_id}", document.id)
    note_outcome(unit, "failed")


def load(session: Session, document_id: str) -> tuple[Document, KnowledgeBase] | None:
    """The document to ingest, and its knowledge base."""
    query = (
        select(Document, KnowledgeBase)
        .join(KnowledgeBase, KnowledgeBase.id == Document.knowledge_base_id)
        .where(Document.id == document_id, Document.status == "processing")
    )
    row = session.execute(query).one_or_none()
    return None if row is None else (row[0], row[1])


class Ingestion:
    """One run over one document."""

    def __init__(
        self,
        platform: Platform,
        document: Document,
        base: KnowledgeBase,
        progress: Progress,
        payload: IngestPayload,
        left_out: str | None,
    ) -> None:
        self._platform = platform
        self._document = document
        self._base = base
        self._progress = ReadingProgress(progress)
        self._payload = payload
        self._left_out = left_out
        self._settings = platform.settings_of(RagSettings)
        self._language: str | None = None

    async def run(self) -> None:
        """Parse, then embed and stage batch by batch, then publish."""
        sink = self._platform.scratch.new(".jsonl")
        self._progress.begin()
        try:
            parsed = await self._parse(sink)
            most = self._settings.max_chunks
            first, passages = await asyncio.to_thread(_survey, self._chunks(parsed), most)
            if passages > most:
                raise UnparsableDocument("too_large", f"over {most} passages")
            if not self._payload.large and passages > LARGE_PASSAGES:
                raise _Large
            if first is not None:
                (self._language,) = await languages_of(self._platform, [first.text])
            self._progress.count(parsed, passages)
            await self._embed_all(self._chunks(parsed))
            await self._platform.database.write(self._finish, parsed)
            self._progress.complete()
        finally:
            sink.unlink(missing_ok=True)

    def _chunks(self, parsed: ParsedDocument) -> Iterator[Chunk]:
        return chunk(read_blocks(parsed.sink), self._base.chunk_size, self._base.chunk_overlap)

    async def _parse(self, sink: Path) -> ParsedDocument:
        limits = limits_of(self._settings, large=self._payload.large)
        path = await self._platform.blobs.local(self._document.sha256)
        children = self._platform.resource(PARSER_PROCESSES)
        reading = asyncio.create_task(parse(children, path, self._parser(), limits, sink))
        try:
            while not (await asyncio.wait({reading}, timeout=_LOOK_EVERY))[0]:
                await self._look(sink)
            return reading.result()
        except SlowDocument:
            raise _Large from None
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _look(self, sink: Path) -> None:
        """Tell the page that is being read. Raises _Gone where nobody waits."""
        if not await self._is_wanted():
            raise _Gone
        place = await asyncio.to_thread(last_place, sink)
        if place is not None:
            self._progress.reading(place)

    async def _is_wanted(self) -> bool:
        """Whether somebody waits for this run; while the database is away, parsing goes on without it."""
        try:
            found = await self._platform.database.read(
                lambda session: session.get(Document, self._document.id)
            )
        except (SQLAlchemyError, OSError):
            return True
        return found is not None and self._is_this_run_of(found)

    def _is_this_run_of(self, document: Document) -> bool:
        """Whether it was neither cancelled nor started over since: passages of two runs would be mixed."""
        return document.status == "processing" and document.uploaded_at == self._document.uploaded_at

    def _parser(self) -> Parser:
        found = self._platform.resource(PARSERS).for_media_type(self._document.content_type)
        if found is None:
            raise ParserUnavailable(f"no parser reads {self._document.content_type} any more")
        return found

    async def _embed_all(self, chunks: Iterator[Chunk]) -> None:
        """Write one batch while the next ones are embedded."""
        done = await self._platform.vectors.staged(self._base.collection, self._document.id)
        await asyncio.to_thread(lambda: next(islice(chunks, done, done), None))
        writing: asyncio.Task[None] | None = None
        async with aclosing(self._embedded(chunks)) as batches:
            try:
                async for batch, embedded in batches:
                    if writing is not None:
                        await writing
                    self._progress.embedded(batch[-1])
                    stage = self._platform.database.write(self._stage, batch, embedded)
                    writing = asyncio.create_task(stage)
                if writing is not None:
                    await writing
            except BaseException:  # a cancelled job leaves no write under way either
                if writing is not None:
                    writing.cancel()
                    await asyncio.gather(writing, return_exceptions=True)
                raise

    async def _embedded(self, chunks: Iterator[Chunk]) -> AsyncGenerator[tuple[list[Chunk], Embedded]]:
        """Batches in order, with their vectors.

        Two are under way: one is cut into tokens while the engine computes the other.
        """
        under_way: deque[tuple[list[Chunk], asyncio.Task[Embedded]]] = deque()
        try:
            while (batch := await asyncio.to_thread(_take, chunks)) or under_way:
                if batch:
                    embedding = asyncio.create_task(self._embed([item.text for item in batch]))
                    under_way.append((batch, embedding))
                if len(under_way) == UNDER_WAY or not batch:
                    first, embedding = under_way.popleft()
                    yield first, await embedding
        finally:
            for _, embedding in under_way:
                embedding.cancel()
            await asyncio.gather(*(embedding for _, embedding in under_way), return_exceptions=True)

    async def _embed(self, texts: Sequence[str]) -> Embedded:
        return await embed(self._platform, self._base.embedding_model, texts, "passage")

    def _stage(self, unit: Unit, batch: Sequence[Chunk], embedded: Embedded) -> None:
        self._hold(unit).chunk_count = batch[-1].index + 1
        points = [
            point_of(self._document.id, item, vector, self._language)
            for item, vector in zip(batch, embedded.vectors, strict=True)
        ]
        vectors, collection = self._platform.vectors, self._base.collection
        vectors.ensure(unit, collection, embedded.vectors.shape[1], embedded.engine)
        vectors.stage(unit, collection, points)

    def _finish(self, unit: Unit, parsed: ParsedDocument) -> None:
        document = self._hold(unit)
        count = self._platform.vectors.publish(unit, self._base.collection, document.id)
        if count == 0:
            raise UnparsableDocument("no_text")
        unread = unread_pages(parsed.unread_pages, parsed.page_count) if parsed.unread_pages else None
        document.notice = " ".join(filter(None, (unread, self._left_out))) or None
        complete(unit, document, self._base, count, parsed.page_count)
        note_outcome(unit, "success")

    def _hold(self, unit: Unit) -> Document:
        """Lock the document and its knowledge base: neither can be deleted between this and the commit."""
        kept = select(KnowledgeBase.revision).where(KnowledgeBase.id == self._base.id)
        revision = unit.session.scalar(kept.with_for_update(read=True, key_share=True))
        if revision is None:
            raise _Gone
        if revision != self._base.revision:
            raise _Reembedded
        document: Document | None = unit.session.get(Document, self._document.id, with_for_update=True)
        if document is None or not self._is_this_run_of(document):
            raise _Gone
        return document


def complete(unit: Unit, document: Document, base: KnowledgeBase, count: int, pages: int | None) -> None:
    """The document's passages are published with this unit."""
    document.status, document.chunk_count = "completed", count
    document.page_count, document.completed_at = pages, utc_now()
    unit.emit(
        DocumentIngested(
            document_id=document.id,
            knowledge_base_id=base.id,
            owner_id=base.owner_id,
            filename=document.filename,
            chunk_count=count,
        )
    )
    if document.tree_wanted:
        queue_one(unit, document, base.owner_id)


def _take(chunks: Iterator[Chunk]) -> list[Chunk]:
    return list(islice(chunks, BATCH))


def _survey(chunks: Iterator[Chunk], most: int) -> tuple[Chunk | None, int]:
    """The first passage, which tells the document's language in each run, and how many there are, as far as
    they are no more than `most`: to count them takes a thousandth of the time to embed them.
    """
    first = next(chunks, None)
    return first, sum(1 for _ in islice(chunks, most)) + (first is not None)


def point_of(document_id: str, item: Chunk, vector: object, language: str | None) -> Point:
    """A passage as a stored point; its id is derived from its position."""
    place = place_of(item)
    return Point(
        id=str(uuid.uuid5(_NAMESPACE, f"{document_id}/{item.index}")),
        group=document_id,
        position=item.index,
        text=item.text,
        vector=vector,  # type: ignore[arg-type]  # a row of a float32 matrix
        payload=place if language is None else {**place, LANGUAGE: language},
    )
