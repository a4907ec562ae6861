"""A long document is found by its words while it is read, before its passages have their vectors.

Its passages are published in a collection without vectors as they are parsed, and leave that in the commit
that completes its ingestion, or ends it. A next version is not found so: the one that it replaces answers
until it is complete.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from sqlalchemy import literal_column, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from builtin_plugins.documents.api import Chunk, UnparsableDocument, chunk, read_blocks, subject_of
from builtin_plugins.rag.models import Document, KnowledgeBase, reading_collection
from builtin_plugins.rag.rights.reading import readable
from builtin_plugins.rag.services.loading import context_of, languages_of, payload_of, point_of
from builtin_plugins.vectors.api import VECTORS, WORDS_ONLY
from kernel.sdk import Platform, Scope, Unit

_AT_ONCE: Final = 1_000
"""Passages per transaction."""
_PAUSE: Final = 9.0
"""The pause between two looks into a growing text, as a multiple of the time of the last one."""


class _Beginning(NamedTuple):
    """The passages that were not published yet, and what is known of their document so far."""

    chunks: Sequence[Chunk]
    first: Chunk
    subject: str


class WordsPublisher:
    """Lets searches find the passages of one document by their words, in order, each once.

    `hold` locks the document in a unit. An earlier run may have published the first passages.
    """

    def __init__(
        self, platform: Platform, base: KnowledgeBase, document: Document, hold: Callable[[Unit], Document]
    ) -> None:
        self._platform = platform
        self._base = base
        self._document = document
        self._hold = hold
        self._published = document.searchable_count
        self._next_look = 0.0

    @property
    def has_published(self) -> bool:
        """Whether searches find anything of the document."""
        return self._published > 0

    async def publish(
        self, chunks: Iterator[Chunk], payload_of_chunk: Callable[[Chunk], Mapping[str, Any]]
    ) -> None:
        """Publish the passages that are not yet; none of a document that replaces one that answers."""
        if self._document.version == 1:
            new = (item for item in chunks if item.index >= self._published)
            while batch := await asyncio.to_thread(lambda: list(islice(new, _AT_ONCE))):
                self._published = await self._platform.database.write(self._write, batch, payload_of_chunk)

    async def publish_beginning(self, sink: Path, most: int) -> None:
        """Publish what a parser has written so far, `most` passages at most; what is missed now, later.

        Raises what `hold` raises.
        """
        if self._document.version > 1 or time.monotonic() < self._next_look:
            return
        begun = time.monotonic()
        beginning = await asyncio.to_thread(self._read, sink, most)
        if beginning is not None:
            (language,) = await languages_of(self._platform, [beginning.first.text])

            def payload(item: Chunk) -> Mapping[str, Any]:
                return payload_of(item, language, context_of(beginning.subject, item.sections))

            with suppress(SQLAlchemyError, OSError):  # reading goes on while the database can't be reached
                await self.publish(iter(beginning.chunks), payload)
        now = time.monotonic()
        self._next_look = now + _PAUSE * (now - begun)

    def _read(self, sink: Path, most: int) -> _Beginning | None:
        passages = list[Chunk]()
        with suppress(UnparsableDocument, OSError):  # it has no end yet, or was removed
            for item in chunk(read_blocks(sink), self._base.chunk_size, self._base.chunk_overlap):
                passages.append(item)  # those before the end are kept
        if len(passages) <= self._published or len(passages) > most:
            return None
        subject = subject_of(self._document.filename, (item.text for item in passages))
        return _Beginning(passages[self._published :], passages[0], subject)

    def _write(
        self, unit: Unit, batch: Sequence[Chunk], payload_of_chunk: Callable[[Chunk], Mapping[str, Any]]
    ) -> int:
        import numpy as np

        document, vectors = self._hold(unit), self._platform.resource(VECTORS)
        collection, no_vector = self._base.reading_collection, np.empty(0, np.float32)
        vectors.ensure(unit, collection, 0, WORDS_ONLY)
        points = [point_of(document.id, item, no_vector, payload_of_chunk(item)) for item in batch]
        vectors.stage(unit, collection, points)
        document.searchable_count = vectors.publish(unit, collection, document.id)
        return document.searchable_count


def withdraw_words(unit: Unit, platform: Platform, document: Document) -> None:
    """Take back what was published, in the unit that ends the ingestion of a locked document."""
    if document.searchable_count:
        collection = reading_collection(document.knowledge_base_id)
        platform.resource(VECTORS).remove_group(unit, collection, document.id)
        document.searchable_count = 0


def bases_with_early_words(session: Session, base_ids: Sequence[str], reader: Scope) -> frozenset[str]:
    """Which of these knowledge bases have documents for this reader that are found while they are read."""
    # With a literal, databases find these few by their index.
    early = Document.searchable_count > literal_column("0")
    query = select(Document.knowledge_base_id).where(
        Document.knowledge_base_id.in_(base_ids), early, readable(reader)
    )
    return frozenset(session.scalars(query.distinct()))
