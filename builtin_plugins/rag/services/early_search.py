"""A long document is found by its words before its passages have their vectors.

Its passages are published in a collection without vectors as soon as it is parsed, and leave that in the
commit that completes its ingestion, or ends it. A next version is not found so: the one that it replaces
answers until it is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from sqlalchemy import literal_column, select
from sqlalchemy.orm import Session

from builtin_plugins.documents.api import Chunk
from builtin_plugins.rag.models import Document, KnowledgeBase, reading_collection
from builtin_plugins.rag.rights.reading import readable
from builtin_plugins.rag.services.loading import point_of
from builtin_plugins.vectors.api import VECTORS, WORDS_ONLY
from kernel.sdk import Platform, Scope, Unit

_AT_ONCE: Final = 1_000
"""Passages per transaction."""


async def publish_words(
    platform: Platform,
    base: KnowledgeBase,
    chunks: Iterator[Chunk],
    payload_of: Callable[[Chunk], Mapping[str, Any]],
    hold: Callable[[Unit], Document],
) -> None:
    """Let searches find these passages by their words. `hold` locks their document. It can be repeated."""
    import numpy as np

    vectors, collection = platform.resource(VECTORS), base.reading_collection
    empty_vector = np.empty(0, np.float32)

    def write(unit: Unit, batch: Sequence[Chunk]) -> None:
        document = hold(unit)
        vectors.ensure(unit, collection, 0, WORDS_ONLY)
        points = [point_of(document.id, item, empty_vector, payload_of(item)) for item in batch]
        vectors.stage(unit, collection, points)
        document.searchable_count = vectors.publish(unit, collection, document.id)

    while batch := list(islice(chunks, _AT_ONCE)):
        await platform.database.write(write, batch)


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
    found = select(Document.knowledge_base_id).where(
        Document.knowledge_base_id.in_(base_ids), early, readable(reader)
    )
    return frozenset(session.scalars(found.distinct()))
