"""The ingestion of a knowledge base as a whole: how far it is, cancelling it, trying again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from builtin_plugins.rag.models import Document
from builtin_plugins.rag.schemas_ingestion import IngestionOut
from builtin_plugins.rag.services import knowledge_bases
from builtin_plugins.rag.services.ingest import CANCELLED, fail_in
from builtin_plugins.rag.services.ingestion_jobs import INGEST, queue_document
from builtin_plugins.rag.services.records import start_over
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import Caller, JobOut, Platform, Scope, Unit, running_jobs, scope_of, utc_now

_WINDOW: Final = timedelta(minutes=5)
_LEAST: Final = timedelta(seconds=10)
"""A pace over less time than this would jump about."""
_AT_ONCE: Final = 200


async def show(caller: Caller, kb_id: str) -> IngestionOut:
    """How far a visible knowledge base is. Raises KnowledgeBaseNotFound."""
    scope = await scope_of(caller.platform, caller.principal)
    return await caller.platform.database.read(_show, scope, kb_id)


def _show(session: Session, scope: Scope, kb_id: str) -> IngestionOut:
    knowledge_bases.find(session, scope, kb_id)
    mine = Document.knowledge_base_id == kb_id
    size = func.coalesce(func.sum(Document.size_bytes), 0)
    counts = select(Document.status, func.count(), size).where(mine).group_by(Document.status)
    found = {status: (int(count), int(total)) for status, count, total in session.execute(counts)}
    processing, waiting_bytes = found.get("processing", (0, 0))
    now = utc_now()
    reading = _reading(session, kb_id) if processing else []
    pace = _pace(session, kb_id, now, reading)
    return IngestionOut(
        processing=processing,
        completed=found.get("completed", (0, 0))[0],
        failed=found.get("failed", (0, 0))[0],
        processing_bytes=waiting_bytes,
        queue_position=_position(session, kb_id) if processing else None,
        documents_per_minute=round(60 * pace.documents / pace.seconds, 1),
        passages_per_second=round(pace.passages / pace.seconds, 1),
        eta_seconds=_seconds_left(waiting_bytes, pace, reading) if processing else None,
    )


class _Reading(NamedTuple):
    """A document that is being read now, by whichever worker."""

    size: int
    passages: int
    job: JobOut

    @property
    def left(self) -> float:
        """The bytes of it that are still to be done."""
        done, total = self.job.progress.done, self.job.progress.total
        return self.size * (1 - done / total) if total else float(self.size)

    @property
    def speed(self) -> float:
        """Its bytes in a second; 0 if that is unknown."""
        return self.left / self.job.eta_seconds if self.job.eta_seconds else 0.0

    def lately(self, began: datetime, now: datetime) -> float:
        """The share of what is done of it that was done since then, at an even pace."""
        started = self.job.started_at or now
        return 1.0 if started >= began else (now - began) / (now - started)


def _reading(session: Session, kb_id: str) -> list[_Reading]:
    jobs = {job.subject: job for job in running_jobs(session, INGEST.name)}
    mine = (Document.knowledge_base_id == kb_id) & (Document.status == "processing")
    columns = select(Document.id, Document.size_bytes, Document.chunk_count)
    rows = session.execute(columns.where(mine & Document.id.in_(jobs)))
    return [_Reading(size, passages, jobs[document_id]) for document_id, size, passages in rows]


class _Pace:
    """What was done lately, and in how many seconds: documents as a whole, passages and bytes also of those
    that are being read.
    """

    def __init__(self, documents: int, passages: float, size: float, seconds: float) -> None:
        self.documents = documents
        self.passages = passages
        self.size = size
        self.seconds = seconds


def _seconds_left(waiting_bytes: int, pace: _Pace, reading: Sequence[_Reading]) -> int | None:
    """As long as the slowest document that is being read takes by its own pace, and all that is left at the
    pace of lately, or that of these documents, which leaves out what they waited. Null while there is none.
    """
    known = [one for one in reading if one.job.eta_seconds is not None]
    longest = max((one.job.eta_seconds or 0 for one in known), default=None)
    waiting = waiting_bytes - sum(one.size for one in known)
    if waiting <= 0:
        return longest
    speed = max(pace.size / pace.seconds, sum(one.speed for one in known))
    if not speed:
        return None
    work = waiting + sum(one.left for one in known)
    return max(longest or 0, round(work / speed))


def _pace(session: Session, kb_id: str, now: datetime, reading: Sequence[_Reading]) -> _Pace:
    """Since what waits began to wait, at most five minutes ago: when nothing waited, nothing was slow."""
    mine, passages = Document.knowledge_base_id == kb_id, func.coalesce(func.sum(Document.chunk_count), 0)
    waiting = select(func.min(Document.uploaded_at), passages).where(mine & (Document.status == "processing"))
    since, under_way = session.execute(waiting).one()
    began = now - _WINDOW if since is None else max(now - _WINDOW, min(since, now - _LEAST))
    lately = mine & (Document.status == "completed") & (Document.completed_at >= began)
    size = func.coalesce(func.sum(Document.size_bytes), 0)
    query = select(func.count(), passages, size, func.min(Document.uploaded_at)).where(lately)
    documents, read, bytes_read, first = session.execute(query).one()
    if since is None and first is not None:
        began = max(began, first)
    seconds = max(1.0, (now - began).total_seconds())
    shares = [(one, one.lately(began, now)) for one in reading]
    earlier = sum(one.passages * (1 - share) for one, share in shares)
    part = sum((one.size - one.left) * share for one, share in shares)
    return _Pace(int(documents), int(read) + int(under_way) - earlier, int(bytes_read) + part, seconds)


def _position(session: Session, kb_id: str) -> int:
    """Behind how many other knowledge bases, whose documents wait longer, the next one stands; from 1."""
    oldest = func.min(Document.uploaded_at).label("oldest")
    waiting = select(Document.knowledge_base_id, oldest).where(Document.status == "processing")
    bases = waiting.group_by(Document.knowledge_base_id).subquery()
    own = select(bases.c.oldest).where(bases.c.knowledge_base_id == kb_id).scalar_subquery()
    ahead = select(func.count()).select_from(bases).where(bases.c.oldest < own)
    return 1 + int(session.scalar(ahead) or 0)


async def cancel_all(caller: Caller, kb_id: str) -> int:
    """Fail what waits or is being read; answers how many. Raises KnowledgeBaseNotFound, NotOwner."""
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
    """Queue what failed once more; answers how many documents. Raises KnowledgeBaseNotFound, NotOwner."""
    scope = await scope_of(caller.platform, caller.principal)
    write, total, asked = caller.platform.database.write, 0, utc_now()
    while changed := await write(_retry_some, caller.platform, scope, kb_id, asked):
        total += changed
    return total


def _retry_some(unit: Unit, platform: Platform, scope: Scope, kb_id: str, asked: datetime) -> int:
    """What fails again meanwhile is left."""
    documents = _some(unit, scope, kb_id, "failed", asked)
    largest = platform.settings_of(RagSettings).large_document_mb * 1024 * 1024
    base = knowledge_bases.find_own(unit.session, scope, kb_id)
    for document in documents:
        start_over(document)
        unit.session.flush()
        queue_document(unit, document, scope.account_id or base.owner_id, int(largest))
    return len(documents)


def _some(unit: Unit, scope: Scope, kb_id: str, status: str, before: datetime | None) -> list[Document]:
    knowledge_bases.find_own(unit.session, scope, kb_id, lock=True)
    wanted = (Document.knowledge_base_id == kb_id) & (Document.status == status)
    if before is not None:
        wanted &= Document.completed_at < before
    oldest = select(Document).where(wanted).order_by(Document.uploaded_at, Document.id)
    return list(unit.session.scalars(oldest.limit(_AT_ONCE).with_for_update()))
