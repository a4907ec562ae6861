"""Check everywhere whether anything that a receipt lists as deleted is left."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from builtin_plugins.rag import api
from builtin_plugins.rag.models import Document, KnowledgeBase, earlier_collection, reading_collection
from builtin_plugins.rag.schemas_receipts import ReceiptFacts
from builtin_plugins.rag.services.metadata import count_values
from builtin_plugins.rag.services.receipts import INDEX_FILES, words_in_files
from builtin_plugins.vectors.api import VECTORS
from kernel.sdk import Platform


@dataclass(frozen=True, slots=True)
class CheckedPlace:
    """A place that was checked, and how much deleted data is left there."""

    place: str
    left: int


async def look_again(platform: Platform, receipt: ReceiptFacts) -> list[CheckedPlace]:
    """What is left in each place. The receipt's signature is checked elsewhere."""
    places = await platform.database.read(_rows, platform, receipt)
    places += await _points(platform, receipt)
    places.append(CheckedPlace("files", await _files(platform, receipt)))
    places.append(CheckedPlace(INDEX_FILES, await platform.database.read(words_in_files, platform, receipt)))
    return places


def _rows(session: Session, platform: Platform, receipt: ReceiptFacts) -> list[CheckedPlace]:
    """Rows of this plugin, and what other plugins still have."""
    base, document = receipt.knowledge_base_id, receipt.document_id
    ids = [one.document_id for one in receipt.documents]
    of = Document.knowledge_base_id == base if document is None else Document.id.in_(ids)
    values = count_values(session, base, None if document is None else ids)
    checked_places = [CheckedPlace("rows", _count(session, Document, of)), CheckedPlace("metadata", values)]
    if document is None:
        checked_places.insert(
            0, CheckedPlace("knowledge_bases", _count(session, KnowledgeBase, KnowledgeBase.id == base))
        )
    left: Counter[str] = Counter()
    for document_id in [None] if document is None else ids:
        answers = platform.hooks.ask_now(
            api.count_derived,
            platform=platform,
            session=session,
            knowledge_base_id=base,
            document_id=document_id,
        )
        for places in answers:
            left.update(places)
    return checked_places + [CheckedPlace(place, count) for place, count in left.items()]


def _count(session: Session, table: type, of: ColumnElement[bool]) -> int:
    return session.scalar(select(func.count()).select_from(table).where(of)) or 0


async def _points(platform: Platform, receipt: ReceiptFacts) -> list[CheckedPlace]:
    """Passages and summaries in the vector store, published or only staged. They include the texts, and the
    indexes of vectors and words are derived from them.
    """
    base = receipt.knowledge_base_id
    passages = await _left_in(platform, f"rag:{base}", receipt)
    passages += await _left_in(platform, earlier_collection(base), receipt)
    passages += await _left_in(platform, reading_collection(base), receipt)
    coming = await platform.database.read(_coming, base)
    if coming is not None:
        passages += await _left_in(platform, coming, receipt)
    summaries = await _left_in(platform, f"rag-tree:{base}", receipt)
    return [
        CheckedPlace("vectors", passages),
        CheckedPlace("texts", passages),
        CheckedPlace("tree_nodes", summaries),
    ]


def _coming(session: Session, base_id: str) -> str | None:
    """Where a change of the embedding model collects its vectors; it goes with the knowledge base's row."""
    base = session.get(KnowledgeBase, base_id)
    return None if base is None else base.coming_collection


async def _left_in(platform: Platform, collection: str, receipt: ReceiptFacts) -> int:
    vectors = platform.resource(VECTORS)
    staged = [await vectors.staged(collection, one.document_id) for one in receipt.documents]
    if receipt.document_id is not None:
        return sum(staged)
    return max(await vectors.count(collection), sum(staged))


async def _files(platform: Platform, receipt: ReceiptFacts) -> int:
    """How many of the listed files are still stored although no document refers to them any more."""
    digests = {one.sha256 for one in receipt.documents}
    unheld = digests - await platform.database.read(_digests_in_use, sorted(digests))
    paths = [await platform.blobs.local(digest) for digest in sorted(unheld)]
    return await asyncio.to_thread(lambda: sum(path.exists() for path in paths))


def _digests_in_use(session: Session, digests: Collection[str]) -> set[str]:
    """Those that other documents refer to."""
    return set(session.scalars(select(Document.sha256).where(Document.sha256.in_(digests))))
