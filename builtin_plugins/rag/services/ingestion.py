"""The ingestion of a whole knowledge base: its progress, cancelling and retrying it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from builtin_plugins.documents.api import PLAIN
from builtin_plugins.long_jobs.api import RunningJob, jobs_at, running_jobs
from builtin_plugins.rag.models import Document
from builtin_plugins.rag.rights.reading import readable
from builtin_plugins.rag.schemas_ingestion import IngestionOut
from builtin_plugins.rag.services import knowledge_bases
from builtin_plugins.rag.services.attempts import CANCELLED, fail_in
from builtin_plugins.rag.services.ingestion_jobs import INGEST, TEXTS, queue_document
from builtin_plugins.rag.services.records import start_over
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import Caller, Platform, Scope, Unit, scope_of, shared_moment, utc_now

_WINDOW: Final = timedelta(minutes=5)
_LEAST: Final = timedelta(seconds=10)
"""A pace measured over less time would fluctuate."""
_REACH: Final = 10
"""How many times what was measured an estimate may cover: the first page of a document, or a note of a few
lines, says little about hundreds of pages.
"""
_AT_ONCE: Final = 200


async def show(caller: Caller, kb_id: str) -> IngestionOut:
    """How far a visible knowledge base is. Raises KnowledgeBaseNotFound."""
    scope = await scope_of(caller.platform, caller.principal)
    return await caller.platform.database.read(_show, scope, kb_id)


def _show(session: Session, scope: Scope, kb_id: str) -> IngestionOut:
    knowledge_bases.find(session, scope, kb_id)
    mine = (Document.knowledge_base_id == kb_id) & readable(scope)
    counts = select(Document.status, func.count()).where(mine).group_by(Document.status)
    counts_by_status = {status: int(count) for status, count in session.execute(counts)}
    processing = counts_by_status.get("processing", 0)
    waiting = _sizes(session, mine & (Document.status == "processing"))
    now = utc_now()
    reading = _reading(session, mine) if processing else []
    pace = _pace(session, mine, now, reading)
    return IngestionOut(
        processing=processing,
        completed=counts_by_status.get("completed", 0),
        failed=counts_by_status.get("failed", 0),
        processing_bytes=sum(waiting.values()),
        queue_position=_position(session, kb_id) if processing else None,
        documents_per_minute=round(60 * pace.documents / pace.seconds, 1),
        passages_per_second=round(pace.passages / pace.seconds, 1),
        eta_seconds=_seconds_left(waiting, pace, reading, now) if processing else None,
    )


def _sizes(session: Session, which: ColumnElement[bool]) -> Counter[str]:
    """The total bytes of these documents, by kind."""
    query = select(Document.content_type, func.sum(Document.size_bytes)).where(which)
    sizes = Counter[str]()
    for content_type, size in session.execute(query.group_by(Document.content_type)):
        sizes[_kind(content_type)] += int(size)
    return sizes


def _kind(content_type: str) -> str:
    """Group content types for estimates: the time per byte of a scan tells nothing about a text."""
    return PLAIN if content_type in TEXTS else content_type


class _Reading(NamedTuple):
    """A document that is being read now, by any worker."""

    kind: str
    size: int
    passages: int
    job: RunningJob

    @property
    def left(self) -> float:
        """Its remaining bytes."""
        return self.size - self._bytes(self.job.done)

    @property
    def measured(self) -> float:
        """Its bytes that were done at the present pace."""
        return self._bytes(self.job.measured)

    @property
    def seconds(self) -> int | None:
        """The seconds that it will still take; None if too little is measured to tell."""
        return self.job.eta_seconds if self.left <= _REACH * self.measured else None

    def speed(self, now: datetime) -> float:
        """Its bytes per second from opening to its end, as others will take, which must be parsed, too; 0 if
        unknown, as in a second run, which does only a part of the work.
        """
        if self.seconds is None or self.job.started_at is None or self.job.done_before:
            return 0.0
        return self.size / ((now - self.job.started_at).total_seconds() + self.seconds)

    def _bytes(self, done: int) -> float:
        return self.size * done / self.job.total if self.job.total else 0.0

    def lately(self, began: datetime, now: datetime) -> float:
        """The share of its finished work that was done since `began`, assuming an even pace."""
        started = self.job.started_at or now
        return 1.0 if started >= began else (now - began) / (now - started)


def _reading(session: Session, mine: ColumnElement[bool]) -> list[_Reading]:
    jobs = {job.subject: job for job in running_jobs(session, INGEST.name)}
    processing = mine & (Document.status == "processing")
    columns = select(Document.id, Document.content_type, Document.size_bytes, Document.chunk_count)
    rows = session.execute(columns.where(processing & Document.id.in_(jobs)))
    return [_Reading(_kind(kind), size, passages, jobs[key]) for key, kind, size, passages in rows]


class _Pace(NamedTuple):
    """What was done lately, and in how many seconds: completed documents, and passages and bytes (by kind)
    including those of documents still being read, bytes as far as their pace is known. `measured` are the
    bytes that this says something about: the whole of documents that were begun earlier.
    """

    documents: int
    passages: float
    sizes: Mapping[str, float]
    measured: Mapping[str, float]
    seconds: float


def _seconds_left(
    waiting: Mapping[str, int], pace: _Pace, reading: Sequence[_Reading], now: datetime
) -> int | None:
    """The maximum of what the slowest document being read and the slowest kind will take, as kinds are read
    in parallel. None while the pace of any kind is unknown, or known from too little.
    """
    timed_readings = [one for one in reading if one.seconds is not None]
    longest = max((one.seconds or 0 for one in timed_readings), default=1)
    for kind, size in waiting.items():
        alike = [one for one in timed_readings if one.kind == kind]
        others = size - sum(one.size for one in alike)
        if others <= 0:
            continue
        speeds = [one.speed(now) for one in alike]
        speed = max(pace.sizes.get(kind, 0.0) / pace.seconds, sum(speeds))
        left = others + sum(one.left for one in alike)
        measured = max(pace.measured.get(kind, 0.0), sum(one.measured for one in alike))
        if not speed or left > _REACH * measured:
            return None
        under_way = sum((one.seconds or 0) * each for one, each in zip(alike, speeds, strict=True))
        longest = max(longest, round((others + under_way) / speed))
    return longest


def _pace(session: Session, mine: ColumnElement[bool], now: datetime, reading: Sequence[_Reading]) -> _Pace:
    """Measured since the oldest document began to wait, at most five minutes: idle time must not count."""
    passages = func.coalesce(func.sum(Document.chunk_count), 0)
    waiting = select(func.min(Document.uploaded_at), passages).where(mine & (Document.status == "processing"))
    since, under_way = session.execute(waiting).one()
    began = now - _WINDOW if since is None else max(now - _WINDOW, min(since, now - _LEAST))
    lately = mine & (Document.status == "completed") & (Document.completed_at >= began)
    query = select(func.count(), passages, func.min(Document.uploaded_at)).where(lately)
    documents, read, first = session.execute(query).one()
    sizes: dict[str, float] = defaultdict(float, _sizes(session, lately))
    measured = dict(sizes)
    if since is None and first is not None:
        began = max(began, first)
    seconds = max(1.0, (now - began).total_seconds())
    before = 0.0  # passages
    for document, early in _begun_before(session, mine, began):
        sizes[_kind(document.content_type)] -= early * document.size_bytes
        before += early * document.chunk_count
    shares = [(item, item.lately(began, now)) for item in reading]
    earlier = sum(item.passages * (1 - share) for item, share in shares)
    for item, share in shares:
        if item.speed(now):
            sizes[item.kind] += (item.size - item.left) * share
    count = int(read) - before + int(under_way) - earlier
    return _Pace(int(documents), count, sizes, measured, seconds)


def _begun_before(
    session: Session, mine: ColumnElement[bool], began: datetime
) -> list[tuple[Document, float]]:
    """The completed documents that were being read at this moment, each with its share read before."""
    jobs = {job.subject: job for job in jobs_at(session, INGEST.name, began)}
    lately = (
        mine & (Document.status == "completed") & (Document.completed_at >= began) & Document.id.in_(jobs)
    )
    return [
        (one, 1.0 - jobs[one.id].share_since(began))
        for one in session.scalars(select(Document).where(lately))
    ]


def _position(session: Session, kb_id: str) -> int:
    """The place of a knowledge base in line, from 1, by its longest-waiting document."""
    oldest = func.min(Document.uploaded_at).label("oldest")
    waiting = select(Document.knowledge_base_id, oldest).where(Document.status == "processing")
    bases = waiting.group_by(Document.knowledge_base_id).subquery()
    own = select(bases.c.oldest).where(bases.c.knowledge_base_id == kb_id).scalar_subquery()
    ahead = select(func.count()).select_from(bases).where(bases.c.oldest < own)
    return 1 + int(session.scalar(ahead) or 0)


async def cancel_all(caller: Caller, kb_id: str) -> int:
    """Fail all documents in process; returns how many. Raises KnowledgeBaseNotFound, NotOwner."""
    scope = await scope_of(caller.platform, caller.principal)
    write, total = caller.platform.database.write, 0
    while changed := await write(_cancel_some, caller.platform, scope, kb_id):
        total += changed
    return total


def _cancel_some(unit: Unit, platform: Platform, scope: Scope, kb_id: str) -> int:
    documents = _some(unit, scope, kb_id, "processing", None)
    for document in documents:
        fail_in(unit, platform, document, CANCELLED)
    return len(documents)


async def retry_failed(caller: Caller, kb_id: str) -> int:
    """Requeue all failed documents; returns how many. Raises KnowledgeBaseNotFound, NotOwner."""
    scope = await scope_of(caller.platform, caller.principal)
    write, total = caller.platform.database.write, 0
    asked_at = await caller.platform.database.read(_now)
    while changed := await write(_retry_some, caller.platform, scope, kb_id, asked_at):
        total += changed
    return total


def _now(session: Session) -> datetime:
    """By the clock that all machines share; a worker has recorded when a document failed."""
    return session.scalars(select(shared_moment(session))).one()


def _retry_some(unit: Unit, platform: Platform, scope: Scope, kb_id: str, asked_at: datetime) -> int:
    """Requeue some documents that failed before `asked_at`; later failures are left."""
    documents = _some(unit, scope, kb_id, "failed", asked_at)
    largest = platform.settings_of(RagSettings).large_document_mb * 1024 * 1024
    base = knowledge_bases.find_own(unit.session, scope, kb_id)
    for document in documents:
        start_over(document)
        unit.session.flush()
        queue_document(unit, document, scope.account_id or base.owner_id, int(largest))
    return len(documents)


def _some(unit: Unit, scope: Scope, kb_id: str, status: str, before: datetime | None) -> list[Document]:
    knowledge_bases.find_own(unit.session, scope, kb_id, lock=True)
    condition = (Document.knowledge_base_id == kb_id) & (Document.status == status) & readable(scope)
    if before is not None:
        condition &= Document.completed_at < before
    oldest = select(Document).where(condition).order_by(Document.uploaded_at, Document.id)
    return list(unit.session.scalars(oldest.limit(_AT_ONCE).with_for_update()))
