"""Jobs that arrive in thousands: taken up in turns, and small ones many at a time.

A job that waits with others has a record but no place in the queue, which would cost more than a small job's
work. In the queue waits a carrier, an ordinary job that takes up the next of them. In the lane ``quick`` it
takes many, passes them to the `together` of their kind, and repeats that for two seconds; in other lanes it
runs one. Before it begins, it enqueues the next carrier if more jobs wait.

A job that could not be completed, or whose worker died, waits here again until it is due (see
`kernel.jobs.resting`). Then a carrier runs it alone, in its owner's turn. If it failed, jobs of its owner and
share leave one of the workers' places to others until it is done; otherwise they would hold every place if
what they need never answers.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from sqlalchemy import ColumnElement, func, select, update
from sqlalchemy.orm import Session

from kernel.acting import Acting, acting_var
from kernel.db.base import shared_now, utc_now
from kernel.db.engine import Unit
from kernel.db.tables import JobRecord, WorkerRecord
from kernel.errors import ANY_ERROR
from kernel.jobs.carriers import call_carrier
from kernel.jobs.declarations import Job, JobRef
from kernel.jobs.gathered import CARRIER, TAKEN, TAKEN_END, Load, taken, waiting
from kernel.jobs.kinds import UNDER_WAY, places
from kernel.jobs.queue import JOB_QUEUE
from kernel.jobs.records import stored_error, tell
from kernel.jobs.runner import JOB_RUNNER
from kernel.jobs.silence import GONE
from kernel.jobs.spans import together_span
from kernel.jobs.together import Together
from kernel.offers import OFFERS
from kernel.tracing import TRACING

if TYPE_CHECKING:
    from kernel.platform import Platform

log = logging.getLogger("platform.jobs")

_MOST: Final = 64
_TURN: Final = 2.0
"""Seconds after which others in the lane get their turn."""
_UNLIMITED: Final = 1_000_000
_TAKEN: Final = (JobRecord.gathered >= TAKEN) & (JobRecord.gathered < TAKEN_END)
_SINCE: Final = func.coalesce(JobRecord.not_before, JobRecord.created_at)
"""Since when a job has waited for its turn; if it was tried before, since it was due again."""


_Share: TypeAlias = tuple[int | None, str | None]
"""An owner, and on whose behalf."""


class _Line(NamedTuple):
    """One owner's waiting jobs of one share: how many, and since when. Those tried before, which run `again`,
    are a line of their own.
    """

    owner_id: int | None
    share: str | None
    again: bool
    waits: int
    since: datetime

    @property
    def whose(self) -> _Share:
        return self.owner_id, self.share


class _Taken(NamedTuple):
    """The jobs that a carrier has taken; `again` if it is one that was tried before."""

    records: list[JobRecord]
    again: bool


async def carry(platform: Platform, load: Load) -> None:
    """Take up the next jobs and run them."""
    job = platform.resource(OFFERS).jobs.get(load.job)
    at_once = job is not None and job.together is not None and load.lane == "quick"
    await platform.database.write(_let_go, platform, load)  # taken by an attempt that died
    took = await platform.database.write(_take, platform, load, _MOST if at_once else 1)
    if not took.records:
        return
    if job is not None and at_once:
        await _carry_many(platform, job, load, took)
    else:
        await _run(platform, load, took)
    await platform.database.write(_call_next, platform, load)  # for jobs that waited only for this place


async def _carry_many(platform: Platform, job: JobRef, load: Load, taken: _Taken) -> None:
    """Take one batch after another for a while: another carrier costs as much as many small jobs."""
    until = time.monotonic() + _TURN
    while taken.records:
        error = None
        if taken.again:
            await _run(platform, load, taken)
        else:
            error = await _together(platform, job, taken.records)
            await platform.database.write(_let_go, platform, load, attempted=False, error=error)
        if error is not None or time.monotonic() >= until:
            break
        taken = await platform.database.write(_take, platform, load, _MOST)


async def _run(platform: Platform, load: Load, taken: _Taken) -> None:
    """Run each job alone."""
    for record in taken.records:
        await platform.resource(JOB_RUNNER).run(record.id, load.carrier)


async def _together(platform: Platform, job: JobRef, records: Sequence[JobRecord]) -> str | None:
    """Handle the jobs together; returns an error, if any. It is not blamed on any of them: each is then run
    alone and shows its own.
    """
    failed = None
    acting_var.set(Acting(job.name, account_id=None))
    together = Together(job.payload, records)
    try:
        if together.payloads and job.together is not None:
            with together_span(platform.resource(TRACING), records):
                await job.together(platform, together)
    except ANY_ERROR as error:  # boundary: a plugin's code may fail in any way
        log.warning("running the jobs %s one by one: %s: %s", job.name, type(error).__name__, error)
        failed = stored_error(error)
    await platform.database.write(together.close_done)
    return failed


def _let_go(
    unit: Unit, platform: Platform, load: Load, *, attempted: bool = True, error: str | None = None
) -> None:
    """Release this carrier's jobs to be run one by one; `attempted` says whether this was an attempt."""
    held = (JobRecord.gathered == taken(load.carrier)) & JobRecord.status.in_(UNDER_WAY)
    change = (
        update(JobRecord)
        .where(held)
        .values(
            status="queued",
            attempts=JobRecord.attempts - (0 if attempted else 1),
            error=JobRecord.error if error is None else error,
            gathered=waiting(load.job, load.lane),
            not_before=shared_now(unit.session),
        )
        .returning(JobRecord.id)
    )
    if unit.session.scalars(change).all():
        call_carrier(unit, platform.resource(JOB_QUEUE), load.job, load.lane)


def _take(unit: Unit, platform: Platform, load: Load, most: int) -> _Taken:
    """Take the jobs whose turn it is for this carrier; several only if none of them was tried before."""
    now = shared_now(unit.session)
    held_back = _held_back(unit.session, load, platform.settings.worker_concurrency)
    lines = [line for line in _lines(unit.session, load, now) if line.whose not in held_back]
    if not lines:
        return _Taken([], again=False)
    turns = _turns(lines, _busy(unit.session, load), most)
    again = turns[0].again
    turns = turns[:1] if again else [line for line in turns if not line.again]
    found = _within(_weighed(unit.session, load, turns, now), most)
    values: dict[str, Any] = {"gathered": taken(load.carrier)}
    at_once = most > 1 and not again
    if at_once:
        values |= {"status": "running", "attempts": JobRecord.attempts + 1, "started_at": utc_now()}
    mine = JobRecord.id.in_([record.id for record in found])
    unit.session.execute(update(JobRecord).where(mine).values(**values))
    if at_once:
        for record in found:
            tell(unit, record)
    if len(found) < sum(line.waits for line in lines):
        call_carrier(unit, platform.resource(JOB_QUEUE), load.job, load.lane)
    return _Taken(found, again)


def _lines(session: Session, load: Load, now: datetime) -> list[_Line]:
    """The lines of jobs that are due, the one with the oldest job first."""
    since, again = func.min(_SINCE), JobRecord.not_before.is_not(None)
    query = (
        select(JobRecord.owner_id, JobRecord.share, again, func.count(), since)
        .where(_due(load, now))
        .group_by(JobRecord.owner_id, JobRecord.share, again)
        .order_by(since)
    )
    return [_Line(*row) for row in session.execute(query)]


def _call_next(unit: Unit, platform: Platform, load: Load) -> None:
    if _lines(unit.session, load, shared_now(unit.session)):
        call_carrier(unit, platform.resource(JOB_QUEUE), load.job, load.lane)


def _due(load: Load, now: datetime) -> ColumnElement[bool]:
    """The jobs that this carrier may take."""
    waits = (JobRecord.gathered == waiting(load.job, load.lane)) & (JobRecord.status == "queued")
    return waits & (JobRecord.not_before.is_(None) | (JobRecord.not_before <= now))


def _busy(session: Session, load: Load) -> dict[tuple[int | None, str | None], int]:
    """The weight of the jobs that carriers have taken, by owner and share."""
    query = (
        select(JobRecord.owner_id, JobRecord.share, func.sum(JobRecord.weight))
        .where(_TAKEN, JobRecord.name == load.job, JobRecord.status.in_(UNDER_WAY))
        .group_by(JobRecord.owner_id, JobRecord.share)
    )
    return {(owner, share): int(weight) for owner, share, weight in session.execute(query)}


def _held_back(session: Session, load: Load, worker_concurrency: int) -> set[_Share]:
    """Whose jobs must wait, because they hold all places but one."""
    troubled = _troubled(session, load)
    if not troubled:
        return set()
    workers = session.scalar(select(func.count()).where(WorkerRecord.seen_at != GONE)) or 1
    most = workers * places(load.lane, worker_concurrency) - 1
    return troubled if _places_of(session, load, troubled) >= max(1, most) else set()


def _troubled(session: Session, load: Load) -> set[_Share]:
    """Whose jobs have failed and are not done."""
    mine = (JobRecord.name == load.job) & (JobRecord.lane == load.lane)
    failed = JobRecord.not_before.is_not(None) & JobRecord.error.is_not(None)
    under_way = JobRecord.status.in_(UNDER_WAY)
    query = select(JobRecord.owner_id, JobRecord.share).where(mine, failed, under_way).distinct()
    return {(owner, share) for owner, share in session.execute(query)}


def _places_of(session: Session, load: Load, whose: set[_Share]) -> int:
    """How many carriers have jobs of these owners and shares."""
    mine = (JobRecord.name == load.job) & (JobRecord.lane == load.lane) & JobRecord.status.in_(UNDER_WAY)
    query = select(JobRecord.gathered, JobRecord.owner_id, JobRecord.share).where(mine, _TAKEN).distinct()
    return len({carrier for carrier, owner, share in session.execute(query) if (owner, share) in whose})


def _turns(lines: Sequence[_Line], busy: dict[tuple[int | None, str | None], int], most: int) -> list[_Line]:
    """Whose turn it is, `most` times: the owner with the least taken, then the share, then the oldest."""
    shares = defaultdict(int, busy)
    owners: defaultdict[int | None, int] = defaultdict(int)
    for (owner, _), weight in busy.items():
        owners[owner] += weight
    left = {line: line.waits for line in lines}
    turns: list[_Line] = []
    while left and len(turns) < most:
        line = min(left, key=lambda one: (owners[one.owner_id], shares[one[:2]], one.since))
        turns.append(line)
        owners[line.owner_id] += 1
        shares[line[:2]] += 1
        left[line] -= 1
        if not left[line]:
            del left[line]
    return turns


def _weighed(session: Session, load: Load, turns: Sequence[_Line], now: datetime) -> Iterator[JobRecord]:
    """The jobs of these turns, without those that another carrier is just taking."""
    counts: defaultdict[_Line, int] = defaultdict(int)
    for line in turns:
        counts[line] += 1
    oldest = {line: iter(_oldest(session, _due(load, now), line, count)) for line, count in counts.items()}
    for line in turns:
        if (record := next(oldest[line], None)) is not None:
            yield record


def _oldest(session: Session, due: ColumnElement[bool], line: _Line, count: int) -> Sequence[JobRecord]:
    query = (
        select(JobRecord)
        .where(
            due,
            JobRecord.owner_id.is_not_distinct_from(line.owner_id),
            JobRecord.share.is_not_distinct_from(line.share),
            JobRecord.not_before.is_not(None) if line.again else JobRecord.not_before.is_(None),
        )
        .order_by(_SINCE, JobRecord.created_at, JobRecord.id)
        .limit(count)
    )
    return session.scalars(query.with_for_update(skip_locked=True)).all()


def _within(records: Iterator[JobRecord], most: int) -> list[JobRecord]:
    """As many as weigh at most `most` together, but at least one."""
    found: list[JobRecord] = []
    weight = 0
    for record in records:
        weight += record.weight
        if found and weight > most:
            break
        found.append(record)
    return found


CARRY = Job(CARRIER, Load, carry, retries=_UNLIMITED, crashes=_UNLIMITED, lane="quick")
