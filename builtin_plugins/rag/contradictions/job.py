"""Compare the documents of a knowledge base that are about the same thing, in a visible job without a model.

What it costs is bounded: the newest documents of each subject, and the beginning of very long ones. The
report replaces the one before in one transaction, so that a job that is killed or cancelled changes nothing.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from typing import Final

from pydantic import BaseModel
from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.rag.contradictions.statements import ComparableText, Statement, statements_of
from builtin_plugins.rag.contradictions.storing import store_report
from builtin_plugins.rag.contradictions.subjects import Subject, subject_of
from builtin_plugins.rag.dates.validity import VALID_FROM, VALID_UNTIL
from builtin_plugins.rag.models import (
    ContradictingPair,
    Document,
    KnowledgeBase,
    MetadataValue,
)
from builtin_plugins.rag.services import knowledge_bases
from builtin_plugins.rag.services.identities import path_in
from builtin_plugins.rag.services.loading import seen_bases
from builtin_plugins.vectors.api import VECTORS, StoredPoint
from kernel.sdk import Caller, LongJob, Platform, Progress, Scope, Unit, scope_of, utc_now

_MOST_OF_A_SUBJECT: Final = 20
_MOST_PASSAGES: Final = 2_000
"""Of one document: about a thousand pages."""
_MOST_PAIRS: Final = 2_000
_PAGE: Final = 500
_DAY: Final = 86_400.0


class ContradictionPayload(BaseModel):
    """The knowledge base whose documents are compared."""

    knowledge_base_id: str


@dataclass
class _Reading:
    """What was read so far, and whether anything was left out."""

    platform: Platform
    collection: str
    is_complete: bool = True

    async def text_of(self, document_id: str) -> ComparableText:
        passages: list[StoredPoint] = []
        total = 1
        while len(passages) < min(total, _MOST_PASSAGES):
            page, total = await self.platform.resource(VECTORS).points(
                self.collection, document_id, _PAGE, len(passages)
            )
            if not page:  # it was replaced or deleted meanwhile
                break
            passages += page
        self.is_complete = self.is_complete and total <= _MOST_PASSAGES
        return await asyncio.to_thread(lambda: ComparableText(statements_of(passages)))


async def start(caller: Caller, kb_id: str) -> str:
    """Queue the comparison; returns the job's id. Raises KnowledgeBaseNotFound, NotOwner."""
    scope = await scope_of(caller.platform, caller.principal)
    return await caller.platform.database.write(_start, scope, kb_id)


def _start(unit: Unit, scope: Scope, kb_id: str) -> str:
    base = knowledge_bases.find_own(unit.session, scope, kb_id)
    owner_id = scope.account_id or base.owner_id
    payload = ContradictionPayload(knowledge_base_id=kb_id)
    return unit.enqueue(FIND_CONTRADICTIONS, payload, owner_id=owner_id, subject=kb_id)


async def find_contradictions(
    platform: Platform, payload: ContradictionPayload, progress: Progress
) -> str | None:
    """Make the report; returns the knowledge base's path."""
    kb_id = payload.knowledge_base_id
    began = utc_now()
    subjects = await platform.database.read(_subjects, kb_id, began)
    reading = _Reading(platform, KnowledgeBase(id=kb_id).collection)
    found: list[ContradictingPair] = []
    for at, documents in enumerate(subjects):
        # In hundredths: how many documents there are is not for everybody to know.
        progress.report(at * 100 // len(subjects), total=100, unit="percent", message="Comparing documents")
        kept = documents[:_MOST_OF_A_SUBJECT]
        reading.is_complete = reading.is_complete and len(kept) == len(documents)
        texts = {one: await reading.text_of(one) for one in kept}
        found += await asyncio.to_thread(_pairs, kb_id, texts)
    is_complete = reading.is_complete and len(found) <= _MOST_PAIRS
    await platform.database.write(store_report, kb_id, found[:_MOST_PAIRS], began, is_complete)
    progress.report(100, total=100)
    return f"/v1/rag/knowledge-bases/{kb_id}"


def _subjects(session: Session, kb_id: str, now: datetime) -> list[list[str]]:
    """The ids of current documents that are about one thing, the newest first; only of several."""
    current = (Document.knowledge_base_id == kb_id) & (Document.status == "completed")
    rows = select(Document.id, Document.filename, Document.identity).where(current)
    expired = _not_now(session, kb_id, now)
    found: dict[Subject, list[str]] = defaultdict(list)
    for document_id, filename, identity in session.execute(
        rows.order_by(Document.uploaded_at.desc(), Document.id)
    ):
        folders = (path_in(identity) or "").rpartition("/")[0]
        subject = subject_of(filename, folders)
        if subject is not None and document_id not in expired:
            found[subject].append(document_id)
    return [documents for documents in found.values() if len(documents) > 1]


def _not_now(session: Session, kb_id: str, now: datetime) -> set[str]:
    """Documents that say that they apply no longer, or not yet."""
    of_base = MetadataValue.knowledge_base_id == kb_id
    over = (MetadataValue.field == VALID_UNTIL) & (MetadataValue.number <= now.timestamp() - _DAY)
    to_come = (MetadataValue.field == VALID_FROM) & (MetadataValue.number > now.timestamp())
    return set(session.scalars(select(MetadataValue.document_id).where(of_base, over | to_come)))


def _pairs(kb_id: str, texts: dict[str, ComparableText]) -> list[ContradictingPair]:
    """What the documents of one subject say differently, the newer document first."""
    return [
        _pair(kb_id, newer, statement, older, opposed)
        for (newer, text), (older, other) in combinations(texts.items(), 2)
        for statement, opposed in text.against(other)
    ]


def _pair(kb_id: str, newer: str, one: Statement, older: str, other: Statement) -> ContradictingPair:
    return ContradictingPair(
        knowledge_base_id=kb_id,
        document_id=newer,
        position=one.position,
        char_start=one.char_start,
        char_end=one.char_end,
        other_id=older,
        other_position=other.position,
        other_start=other.char_start,
        other_end=other.char_end,
    )


FIND_CONTRADICTIONS = LongJob(
    "rag.find_contradictions",
    ContradictionPayload,
    find_contradictions,
    title="Compare documents",
    visible=seen_bases,
)
