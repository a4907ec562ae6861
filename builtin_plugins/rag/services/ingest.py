"""Ingest a document: parse, cut, embed, stage, then publish all of it at once. A long one is found by its
words in the meantime.

The job may be killed anywhere. Parsing and cutting are deterministic and a passage's id follows from its
position, so a second run continues after the passages already written, and nothing is duplicated. The commit
that makes the document `completed` makes its passages visible to searches.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import aclosing
from itertools import islice
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from builtin_plugins.documents.api import (
    PARSER_PROCESSES,
    PARSERS,
    Chunk,
    ParsedDocument,
    Parser,
    ParserPosition,
    ParserUnavailable,
    SlowDocument,
    UnparsableDocument,
    chunk,
    last_place,
    parse,
    read_blocks,
    subject_of,
    unread_part,
)
from builtin_plugins.inference.api import Embedded
from builtin_plugins.rag.events import DocumentIngested
from builtin_plugins.rag.metadata.proposing import queue_proposals
from builtin_plugins.rag.metadata.publishing import Properties, settle_metadata, with_language, with_validity
from builtin_plugins.rag.models import Document, KnowledgeBase
from builtin_plugins.rag.services.attempts import Gone, IngestPayload, fail, is_wanted, load, path_of
from builtin_plugins.rag.services.deletions import forget
from builtin_plugins.rag.services.early_search import WordsPublisher, withdraw_words
from builtin_plugins.rag.services.embedding import engine_changed
from builtin_plugins.rag.services.loading import context_of, languages_of, payload_of, point_of
from builtin_plugins.rag.services.records import OriginalLost, note_outcome, original
from builtin_plugins.rag.services.scan_languages import unread_language
from builtin_plugins.rag.services.unchanged import KnownVectors, known_vectors
from builtin_plugins.rag.services.usage import refusal_of_passages
from builtin_plugins.rag.services.versions import hold_earlier, replace_earlier
from builtin_plugins.rag.settings import RagSettings
from builtin_plugins.rag.trees.job import queue_one
from builtin_plugins.vectors.api import VECTORS, EngineMismatch, searched_text
from kernel.sdk import JobFailed, Platform, Progress, Unit, utc_now
from kernel.sdk.jobs import JobMoved, others_wait

_LONGEST_PAGE = 20_000
"""Characters. Anything longer is a sheet, not a page; a workbook has too few to show progress by."""
_RECOGNIZING = 0.9
"""The share of a scanned page's work that is done once it is recognized; text pages take no time to read."""


class ReadingProgress:
    """Reports the progress of one run, which never goes back, even after a crash."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._pages = 0
        self._passages = 0
        self._ahead = 0

    def begin(self) -> None:
        """Report that the file is being opened."""
        self._progress.report(message="Reading the file")

    def reading(self, place: ParserPosition) -> None:
        """Report the page being read, which takes a while in long or scanned documents."""
        if not place.pages:
            self._progress.report(message=f"Reading page {place.page:,}")
            return
        message = f"Reading page {place.page:,} of {place.pages:,}"
        self._tell(_ahead(place.recognized), place.pages, "pages", message)

    def count(self, parsed: ParsedDocument, passages: int, done: int) -> None:
        """Note how many passages there are to embed, and how many an earlier run has done. Parsing says
        nothing about how long that takes.
        """
        pages = parsed.page_count or 0
        self._passages = passages
        self._pages = pages if parsed.char_count <= pages * _LONGEST_PAGE else 0
        self._ahead = _ahead(parsed.recognized_pages) if self._pages else 0
        following = min(done + 1, passages)
        self._count(self._ahead, done, f"Embedding passage {following:,} of {passages:,}")
        self._progress.restart_pace()

    def embedded(self, last: Chunk) -> None:
        """All passages up to this one have their vectors."""
        number, pages = last.index + 1, 0
        if self._pages:
            pages = self._ahead + (self._pages - self._ahead) * (last.page or 0) // self._pages
        self._count(pages, number, f"Embedding passage {number:,} of {self._passages:,}")

    def complete(self) -> None:
        """Report everything as done, including empty pages at the end."""
        self._progress.report(self._progress.total)

    def _count(self, pages: int, passages: int, message: str) -> None:
        if self._pages:
            self._tell(pages, self._pages, "pages", message)
        else:
            self._tell(passages, self._passages, "passages", message)

    def _tell(self, done: int, total: int, unit: str, message: str) -> None:
        before = self._progress
        if (before.unit, before.total) == (unit, total):
            if done < before.done:  # what an earlier run did is done again
                before.restart_pace()
            done = max(done, before.done)
        before.report(min(done, total), total=total, unit=unit, message=message)


def _ahead(recognized: int) -> int:
    """The progress in pages when this many are recognized and none is embedded."""
    return ceil(recognized * _RECOGNIZING)


T = TypeVar("T")

log = logging.getLogger("platform.rag.ingest")

BATCH = 96
TURN = 20
"""Batches of a large document that are embedded before others get the lane, if any wait."""
FIRST_PAGES = 5
"""Pages of a scan that are recognized before others get the lane, if any wait. In its next turn they are
recognized again, which takes 2 to 5 seconds each.
"""
UNDER_WAY = 2
"""Batches of one document that are embedded at once."""
_LOOK_EVERY = 1.0  # seconds between checks that the document is still wanted
LARGE_PASSAGES = 500
"""Documents with more passages wait in their own lane."""
_NO_PARSER = (
    "This server currently has no parser for {}. Install or repair the plugin that reads it, "
    "then upload the file again."
)


class _Large(Exception):
    """Reading the document will take long, or embedding it, if it `has_words` to be found by."""

    def __init__(self, *, has_words: bool) -> None:
        super().__init__()
        self.has_words = has_words


class _NoRoom(Exception):
    """There are too many passages already; the text says how many."""


class _Reembedded(Exception):
    """The embedding model was changed meanwhile: what was staged is gone."""


async def ingest(
    platform: Platform, payload: IngestPayload, progress: Progress, left_out: str | None = None
) -> str:
    """Bring a document from `processing` to `completed` or `failed`; returns its path.

    `left_out` names the files inside that did not become documents. Raises `Gone` if it isn't wanted.
    """
    pair = await platform.database.read(load, payload)
    if pair is None:
        raise Gone
    document, base = pair
    try:
        await Ingestion(platform, document, base, progress, payload, left_out).run()
    except _Large as large:
        update = {"large": True, "has_words": large.has_words}
        first = not large.has_words
        raise JobMoved("large", payload.model_copy(update=update), first_turn=first) from None
    except _Reembedded:
        return await ingest(platform, payload, progress, left_out)
    except UnparsableDocument as error:
        log.info("document %s can't be parsed: %s", document.id, error.reason or error.code)
        await _fail_finally(platform, document, error.detail)
    except _NoRoom as error:
        await _fail_finally(platform, document, str(error))
    except ParserUnavailable as error:
        log.error("document %s: %s", document.id, error)
        await _fail_finally(platform, document, _NO_PARSER.format(document.content_type))
    except EngineMismatch as error:
        changed = engine_changed(base.embedding_model, error)
        log.error("document %s: %s", document.id, changed)
        await _fail_finally(platform, document, str(changed.detail))
    return path_of(document)


async def _fail_finally(platform: Platform, document: Document, detail: str) -> NoReturn:
    await fail(platform, document.id, detail, document.uploaded_at)
    raise JobFailed(detail)


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
        self._subject = ""
        self._validity: Properties = {}
        self._known_vectors = KnownVectors({}, "")
        self._doubts: str | None = None
        self._words = WordsPublisher(platform, base, document, self._hold)

    async def run(self) -> None:
        """Parse and let the words be found, embed and stage batch by batch, then publish."""
        sink = self._platform.scratch.new(".jsonl")
        self._progress.begin()
        try:
            parsed = await self._parse(sink)
            most = self._settings.max_chunks
            survey = await asyncio.to_thread(_survey, self._chunks(parsed), most, self._document.filename)
            first, passages, self._subject, self._validity = survey
            if passages > most:
                raise UnparsableDocument("too_large", f"over {most} passages")
            await self._check_room(passages)
            if first is not None:
                (self._language,) = await languages_of(self._platform, [first.text])
                self._doubts = self._language_doubts(parsed, first.text)
            if passages > BATCH:
                await self._words.publish(self._chunks(parsed), self._payload_of)
            if passages > (BATCH if self._payload.large else LARGE_PASSAGES) and await self._lets_others_in():
                raise _Large(has_words=True)
            done = await self._platform.resource(VECTORS).staged(self._base.collection, self._document.id)
            self._known_vectors = await known_vectors(self._platform, self._base, self._document)
            self._progress.count(parsed, passages, done)
            await self._while_wanted(self._embed_all(self._chunks(parsed), done))
            await self._platform.database.write(self._finish, parsed)
            self._progress.complete()
        finally:
            sink.unlink(missing_ok=True)

    def _language_doubts(self, parsed: ParsedDocument, text: str) -> str | None:
        if self._platform.resource(PARSERS).recognizer is not None:
            return None  # it knows other languages than tesseract
        return unread_language(parsed, text, self._language, self._settings.ocr_languages)

    async def _check_room(self, passages: int) -> None:
        """Raises _NoRoom if the account or the organization may not have this many passages more."""
        refusal = await self._platform.database.read(
            refusal_of_passages, self._settings, self._base, self._document, passages
        )
        if refusal is not None:
            raise _NoRoom(refusal)

    def _chunks(self, parsed: ParsedDocument) -> Iterator[Chunk]:
        return chunk(read_blocks(parsed.sink), self._base.chunk_size, self._base.chunk_overlap)

    async def _parse(self, sink: Path) -> ParsedDocument:
        recognizer = self._platform.resource(PARSERS).recognizer
        limits = self._settings.parse_limits(large=self._payload.large, recognizer=recognizer)
        try:
            path = await original(self._platform, self._document)
        except OriginalLost:
            raise UnparsableDocument("corrupt", "its stored file is not whole") from None
        children = self._platform.resource(PARSER_PROCESSES)

        async def tell() -> None:
            place = await asyncio.to_thread(last_place, sink)
            if place is not None:
                self._progress.reading(place)
            await self._words.publish_beginning(sink, self._settings.max_chunks)
            begun = place is not None and place.recognized >= FIRST_PAGES and self._words.has_published
            if begun and self._payload.large and await self._lets_others_in():
                raise _Large(has_words=True)

        try:
            return await self._while_wanted(parse(children, path, self._parser(), limits, sink), tell)
        except SlowDocument:
            if self._payload.large:
                raise UnparsableDocument("too_large", "too many pages to recognize") from None
            raise _Large(has_words=False) from None

    async def _while_wanted(
        self, work: Coroutine[Any, Any, T], tell: Callable[[], Awaitable[None]] | None = None
    ) -> T:
        """Await the work, calling `tell` every second to report progress. Raises Gone if it isn't wanted."""
        task = asyncio.create_task(work)
        try:
            while not (await asyncio.wait({task}, timeout=_LOOK_EVERY))[0]:
                if not await self._is_wanted():
                    raise Gone
                if tell is not None:
                    await tell()
            return task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _is_wanted(self) -> bool:
        """Whether this run is still wanted; assumed so while the database can't be reached."""
        try:
            document = await self._platform.database.read(
                lambda session: session.get(Document, self._document.id)
            )
        except (SQLAlchemyError, OSError):
            return True
        return is_wanted(document, self._document.uploaded_at)

    def _parser(self) -> Parser:
        parser = self._platform.resource(PARSERS).for_media_type(self._document.content_type)
        if parser is None:
            raise ParserUnavailable(f"no parser reads {self._document.content_type} any more")
        return parser

    async def _embed_all(self, chunks: Iterator[Chunk], done: int) -> None:
        """Write one batch while the next ones are embedded; `done` passages are already written.

        Raises JobMoved after some batches if others' documents wait in the lane: one account's large document
        must not hold them up for as long as it takes. What is staged by then is not embedded again.
        """
        await asyncio.to_thread(lambda: next(islice(chunks, done, done), None))
        writing: asyncio.Task[None] | None = None
        written = 0
        async with aclosing(self._embedded(chunks)) as batches:
            try:
                async for batch, embedded in batches:
                    if writing is not None:
                        await writing
                    self._progress.embedded(batch[-1])
                    stage = self._platform.database.write(self._stage, batch, embedded)
                    writing = asyncio.create_task(stage)
                    written += 1
                    if self._payload.large and written % TURN == 0 and await self._others_wait():
                        await writing
                        raise JobMoved("large", self._payload)
                if writing is not None:
                    await writing
            except BaseException:  # a cancelled job must leave no write running
                if writing is not None:
                    writing.cancel()
                    await asyncio.gather(writing, return_exceptions=True)
                raise

    async def _lets_others_in(self) -> bool:
        """Whether it waits now that it has words: in its own lane, until others have them, too."""
        if not self._payload.large:
            return True
        return not self._payload.has_words and await self._others_wait()

    async def _others_wait(self) -> bool:
        return await self._platform.database.read(others_wait, "large", self._base.owner_id)

    async def _embedded(self, chunks: Iterator[Chunk]) -> AsyncGenerator[tuple[list[Chunk], Embedded]]:
        """Batches in order, with their vectors.

        Two run at a time: one is tokenized while the engine computes the other.
        """
        under_way: deque[tuple[list[Chunk], asyncio.Task[Embedded]]] = deque()
        try:
            while (batch := await asyncio.to_thread(_take, chunks)) or under_way:
                if batch:
                    embedding = asyncio.create_task(self._embed(batch))
                    under_way.append((batch, embedding))
                if len(under_way) == UNDER_WAY or not batch:
                    first, embedding = under_way.popleft()
                    yield first, await embedding
        finally:
            for _, embedding in under_way:
                embedding.cancel()
            await asyncio.gather(*(embedding for _, embedding in under_way), return_exceptions=True)

    async def _embed(self, batch: Sequence[Chunk]) -> Embedded:
        texts = [searched_text(item.text, self._payload_of(item)) for item in batch]
        return await self._known_vectors.embed(self._platform, self._base.embedding_model, texts)

    def _payload_of(self, item: Chunk) -> dict[str, Any]:
        return payload_of(item, self._language, context_of(self._subject, item.sections))

    def _stage(self, unit: Unit, batch: Sequence[Chunk], embedded: Embedded) -> None:
        document, number = self._hold(unit), batch[-1].index + 1
        document.chunk_count = number
        points = [
            point_of(self._document.id, item, vector, self._payload_of(item))
            for item, vector in zip(batch, embedded.vectors, strict=True)
        ]
        vectors, collection = self._platform.resource(VECTORS), self._base.collection
        vectors.ensure(unit, collection, embedded.vectors.shape[1], embedded.engine)
        vectors.stage(unit, collection, points)
        if document.searchable_count:
            vectors.publish(unit, collection, document.id)  # found by meaning, too

    def _finish(self, unit: Unit, parsed: ParsedDocument) -> None:
        document = self._hold(unit)
        hold_earlier(unit, document)
        count = self._platform.resource(VECTORS).publish(unit, self._base.collection, document.id)
        if count == 0:
            raise UnparsableDocument("no_text")
        document.notice = " ".join(filter(None, (unread_part(parsed), self._doubts, self._left_out))) or None
        properties = with_language({**parsed.properties, **self._validity}, self._language)
        settle_metadata(unit, self._base.id, [(document, properties)])
        complete(unit, self._platform, document, self._base, count, parsed.page_count)
        forget(unit, self._platform, document)
        note_outcome(unit, "success")

    def _hold(self, unit: Unit) -> Document:
        """Lock the document and its knowledge base, so that neither can be deleted before the commit."""
        query = select(KnowledgeBase.revision).where(KnowledgeBase.id == self._base.id)
        revision = unit.session.scalar(query.with_for_update(read=True, key_share=True))
        if revision is None:
            raise Gone
        if revision != self._base.revision:
            raise _Reembedded
        document: Document | None = unit.session.get(Document, self._document.id, with_for_update=True)
        if document is None or not is_wanted(document, self._document.uploaded_at):
            raise Gone
        return document


def complete(
    unit: Unit, platform: Platform, document: Document, base: KnowledgeBase, count: int, pages: int | None
) -> None:
    """Mark a document completed in this unit, which publishes its passages; it replaces earlier versions."""
    document.status, document.chunk_count = "completed", count
    document.page_count, document.completed_at = pages, utc_now()
    withdraw_words(unit, platform, document)
    replace_earlier(unit, platform, base, document)
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
    queue_proposals(unit, base, document.id, base.owner_id)


def _take(chunks: Iterator[Chunk]) -> list[Chunk]:
    return list(islice(chunks, BATCH))


_BEGINNING = 20
"""Passages in which a document may say when it applies."""


class _Survey(NamedTuple):
    """The first passage, which decides the document's language, how many there are up to a limit, what the
    document is about, and what its first passages say about when it applies.
    """

    first: Chunk | None
    passages: int
    subject: str
    validity: Properties


def _survey(chunks: Iterator[Chunk], most: int, filename: str) -> _Survey:
    """Read all passages once, which takes a thousandth of the time of embedding."""
    first, passages, beginning = None, 0, list[str]()

    def texts() -> Iterator[str]:
        nonlocal first, passages
        for item in islice(chunks, most + 1):
            first, passages = first or item, passages + 1
            if passages <= _BEGINNING:
                beginning.append(item.text)
            yield item.text

    subject = subject_of(filename, texts())
    return _Survey(first, passages, subject, with_validity({}, beginning))
