"""Detect the languages of documents stored without one: imported, or from before languages were detected.

A low-priority job stores them with the passages, document by document; text indexes then read these passages
again. If killed, it continues with the remaining documents. Two runs at once may do the same documents, with
the same result. Knowledge bases whose embedding model is being changed are skipped meanwhile: the change
copies passages as they are, and would lose languages found after that.
"""

from __future__ import annotations

import time

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from builtin_plugins.rag.models import Document, KnowledgeBase
from builtin_plugins.rag.services.loading import languages_of
from builtin_plugins.vectors.api import LANGUAGE, VECTORS
from kernel.sdk import Job, NoPayload, Platform, Unit

_BATCH = 500
_SECONDS = 60
"""A run ends after this time and leaves the rest to the next, so that its lane is free for others."""


async def tell_languages(platform: Platform, _payload: NoPayload) -> None:
    """Detect the language of each completed document that hasn't been checked yet."""
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        batch = await platform.database.read(_next)
        if not batch:
            return
        for base, document_id in batch:
            await _tell(platform, base, document_id)
            if time.monotonic() >= until:
                return


async def _tell(platform: Platform, base: KnowledgeBase, document_id: str) -> None:
    rows, _ = await platform.resource(VECTORS).points(base.collection, document_id, 1, 0)
    language = rows[0].payload.get(LANGUAGE) if rows else None
    if rows and language is None:
        (language,) = await languages_of(platform, [rows[0].text])
    await platform.database.write(_store, platform, base.id, document_id, language)


def _next(session: Session) -> list[tuple[KnowledgeBase, str]]:
    """Some documents to check, found by a partial index."""
    query = (
        select(KnowledgeBase, Document.id)
        .join(Document, Document.knowledge_base_id == KnowledgeBase.id)
        .where(
            Document.language_told.is_(False),
            Document.status == "completed",
            KnowledgeBase.reembedding.is_(None),
        )
        .limit(_BATCH)
    )
    return [(row[0], row[1]) for row in session.execute(query)]


def _store(unit: Unit, platform: Platform, kb_id: str, document_id: str, language: str | None) -> None:
    """Store it with the passages, unless they are being copied. Locks in the order of an ingestion."""
    mine = select(KnowledgeBase).where(KnowledgeBase.id == kb_id)
    base: KnowledgeBase | None = unit.session.scalar(mine.with_for_update(read=True, key_share=True))
    if base is None or base.reembedding is not None:
        return
    if unit.session.get(Document, document_id, with_for_update=True) is None:
        return
    if language is not None:
        platform.resource(VECTORS).annotate(unit, base.collection, document_id, {LANGUAGE: language})
    unit.session.execute(update(Document).where(Document.id == document_id).values(language_told=True))


TELL_LANGUAGES = Job("rag.tell_languages", NoPayload, tell_languages, schedule="*/10 * * * *", lane="large")
