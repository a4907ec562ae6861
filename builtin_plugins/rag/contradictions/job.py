"""Compare the documents of a knowledge base that are about the same thing, in a visible job: by rules, and if
somebody asks for it, by a model.

What it costs is bounded: the newest documents of each subject, the beginning of very long ones, and as many
new pairs for the model as were asked for. The report replaces the one before in one transaction, so that a
job that is killed or cancelled changes nothing but which pairs the model judged.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from typing import Final, NamedTuple

from pydantic import BaseModel
from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.inference.api import has_text_model
from builtin_plugins.rag.contradictions.candidates import MOST_STATEMENTS, SourcedStatement, find_candidates
from builtin_plugins.rag.contradictions.judging import judge_pairs
from builtin_plugins.rag.contradictions.statements import ComparableText, Statement, statements_of
from builtin_plugins.rag.contradictions.storing import store_report
from builtin_plugins.rag.contradictions.subjects import Subject, subject_of
from builtin_plugins.rag.dates.validity import VALID_FROM, VALID_UNTIL
from builtin_plugins.rag.models import (
    ContradictingPair,
    ContradictionReport,
    Document,
    KnowledgeBase,
    MetadataValue,
)
from builtin_plugins.rag.rights.reading import readable
from builtin_plugins.rag.services import knowledge_bases
from builtin_plugins.rag.services.identities import path_in
from builtin_plugins.rag.services.loading import seen_bases
from builtin_plugins.vectors.api import VECTORS, StoredPoint
from kernel.sdk import (
    ACCOUNT_STATES,
    Caller,
    JobFailed,
    LongJob,
    Platform,
    Progress,
    Scope,
    Unit,
    Unprocessable,
    scope_of,
    utc_now,
)

_MOST_OF_A_SUBJECT: Final = 20
_MOST_PASSAGES: Final = 2_000
"""Of one document: about a thousand pages."""
_MOST_PAIRS: Final = 2_000
_PAGE: Final = 500
_EVERYTHING: Final = Scope(None, everything=True)
_DAY: Final = 86_400.0


class ContradictionPayload(BaseModel):
    """The knowledge base whose documents are compared, how many pairs a model is asked about, and whose
    account asked for it (None for a service).
    """

    knowledge_base_id: str
    model_calls: int = 0
    account_id: int | None = None


class _Comparable(NamedTuple):
    """A current document by its name."""

    id: str
    filename: str
    subject: Subject | None


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


async def start(caller: Caller, kb_id: str, model_calls: int = 0) -> str:
    """Queue the comparison; returns the job's id. Raises KnowledgeBaseNotFound, NotOwner, Unprocessable."""
    if model_calls and not has_text_model(caller.platform):
        raise Unprocessable.field(
            ("body", "model_calls"), "no model runtime is connected: an administrator can connect one; send 0"
        )
    scope = await scope_of(caller.platform, caller.principal)
    return await caller.platform.database.write(_start, scope, kb_id, model_calls)


def _start(unit: Unit, scope: Scope, kb_id: str, model_calls: int) -> str:
    base = knowledge_bases.find_own(unit.session, scope, kb_id)
    owner_id = scope.account_id or base.owner_id
    payload = ContradictionPayload(
        knowledge_base_id=kb_id, model_calls=model_calls, account_id=scope.account_id
    )
    return unit.enqueue(FIND_CONTRADICTIONS, payload, owner_id=owner_id, subject=kb_id)


async def find_contradictions(
    platform: Platform, payload: ContradictionPayload, progress: Progress
) -> str | None:
    """Make the report; returns the knowledge base's path. Raises Unavailable, GatewayTimeout, JobFailed."""
    kb_id = payload.knowledge_base_id
    began = utc_now()
    documents = await platform.database.read(_documents, kb_id, began, _EVERYTHING)
    reading = _Reading(platform, KnowledgeBase(id=kb_id).collection)
    pairs = await _by_rules(kb_id, documents, reading, progress)
    judged = 0
    if payload.model_calls:
        scope = await _scope_of(platform, payload.account_id)
        visible = await platform.database.read(_documents, kb_id, began, scope)
        judged = await _by_model(payload, visible, reading, progress, pairs)
    report = ContradictionReport(
        knowledge_base_id=kb_id,
        made_at=began,
        is_complete=reading.is_complete and len(pairs) <= _MOST_PAIRS,
        judged_pairs=judged,
    )
    await platform.database.write(store_report, report, pairs[:_MOST_PAIRS])
    progress.report(100, total=100, unit="percent", message="Comparing documents")
    return f"/v1/rag/knowledge-bases/{kb_id}"


async def _scope_of(platform: Platform, account_id: int | None) -> Scope:
    """What an account may read now: a model is shown nothing else for it. Raises JobFailed."""
    if account_id is None:
        return _EVERYTHING
    account = await platform.resource(ACCOUNT_STATES).get(account_id)
    if account is None or not account.is_active:
        raise JobFailed("The account that asked for the comparison was deleted or deactivated")
    return await scope_of(platform, account.principal)


async def _by_rules(
    kb_id: str, documents: Sequence[_Comparable], reading: _Reading, progress: Progress
) -> list[ContradictingPair]:
    """What documents of one subject say in the same words but for a value."""
    subjects = _subjects(documents)
    pairs: list[ContradictingPair] = []
    for at, alike in enumerate(subjects):
        # In hundredths: how many documents there are is not for everybody to know.
        progress.report(at * 100 // len(subjects), total=100, unit="percent", message="Comparing documents")
        newest = alike[:_MOST_OF_A_SUBJECT]
        reading.is_complete = reading.is_complete and len(newest) == len(alike)
        texts = {one: await reading.text_of(one) for one in newest}
        pairs += await asyncio.to_thread(_pairs, kb_id, texts)
    return pairs


async def _by_model(
    payload: ContradictionPayload,
    documents: Sequence[_Comparable],
    reading: _Reading,
    progress: Progress,
    pairs: list[ContradictingPair],
) -> int:
    """Add to `pairs` what a model says of pairs in other words; returns how many it judged."""
    platform, kb_id = reading.platform, payload.knowledge_base_id
    base = await platform.database.read(lambda session: session.get(KnowledgeBase, kb_id))
    if base is None:  # deleted meanwhile
        return 0
    statements: list[SourcedStatement] = []
    for document in documents:
        text = await reading.text_of(document.id)
        statements += [SourcedStatement(*document, statement) for statement in text.statements]
        if len(statements) > MOST_STATEMENTS:
            reading.is_complete = False
            break
    settled = {((one.document_id, one.char_start), (one.other_id, one.other_start)) for one in pairs}
    candidates = await find_candidates(platform, base.embedding_model, statements[:MOST_STATEMENTS], settled)
    judged = await judge_pairs(platform, base.llm_model, candidates, payload.model_calls, progress)
    reading.is_complete = reading.is_complete and judged.number == len(candidates)
    for newer, older in judged.contradicting:
        pair = _pair(kb_id, newer.document_id, newer.statement, older.document_id, older.statement)
        pair.by_model = True
        pairs.append(pair)
    return judged.number


def _documents(session: Session, kb_id: str, now: datetime, scope: Scope) -> list[_Comparable]:
    """Current documents that apply now and that a scope may read, the newest first; none in the trash."""
    current = (Document.knowledge_base_id == kb_id) & (Document.status == "completed")
    rows = select(Document.id, Document.filename, Document.identity).where(current, readable(scope))
    expired = _not_now(session, kb_id, now)
    return [
        _Comparable(document_id, filename, subject_of(filename, (path_in(identity) or "").rpartition("/")[0]))
        for document_id, filename, identity in session.execute(
            rows.order_by(Document.uploaded_at.desc(), Document.id)
        )
        if document_id not in expired
    ]


def _subjects(documents: Sequence[_Comparable]) -> list[list[str]]:
    """The ids of documents that are about one thing, the newest first; only of several."""
    ids_by_subject: dict[Subject, list[str]] = defaultdict(list)
    for document in documents:
        if document.subject is not None:
            ids_by_subject[document.subject].append(document.id)
    return [alike for alike in ids_by_subject.values() if len(alike) > 1]


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
