"""Whose turn it is: taking jobs out of the queue.

In each lane, jobs that were enqueued without `Gather` run in order of arrival. The others form lines, one for
each kind, owner and share. The next place goes to the kind that holds the fewest, then to its owner, then to
the owner's share with the fewest; among equals, to the one that was served longest ago. Rows are taken ``FOR
UPDATE SKIP LOCKED``, so workers don't wait for each other; SQLite has one writer at a time anyway.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import count
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Select, and_, bindparam, false, func, not_, or_, select, text
from sqlalchemy.orm import Session

from kernel.db.base import UtcDateTime, shared_now
from kernel.db.engine import Unit
from kernel.db.tables import JobRecord, WorkerRecord
from kernel.jobs.kinds import Lane, places
from kernel.jobs.queue import claim_all
from kernel.libs.prepared import Prepared

BATCH: Final = 64
"""The most weight of jobs that are handled together."""
_REMEMBERED: Final = 10_000

_Share = tuple[str, int | None, str | None]
"""A kind, an owner, and on whose behalf."""
_SHARE: Final[tuple[Any, ...]] = (JobRecord.name, JobRecord.owner_id, JobRecord.share)

# As text, because SQLite uses a partial index only for a condition that it knows beforehand.
_IN_ORDER: Final = text("status = 'queued' AND weight IS NULL")
_IN_TURN: Final = text("status = 'queued' AND weight IS NOT NULL")
_UNDER_WAY: Final = text("status IN ('queued', 'running')")
_TRIED: Final = JobRecord.not_before.is_not(None)
_TAKEN: Final = JobRecord.worker.is_not(None)
_SINCE: Final = func.coalesce(JobRecord.not_before, JobRecord.created_at)
"""Since when a job has waited for its turn; if it was tried before, since it was due again."""
_LANE: Final = JobRecord.lane == bindparam("lane")
_DUE: Final = or_(~_TRIED, JobRecord.not_before <= bindparam("now", type_=UtcDateTime()))


def _oldest(*conditions: Any, again: bool) -> Select[Any]:
    """The due jobs of a lane that have waited longest, without those that another worker is just taking."""
    columns: tuple[Any, ...] = (JobRecord.id, JobRecord.weight, _SINCE.label("since"))
    query = select(*columns).where(_LANE, _DUE, *conditions)
    order = (JobRecord.not_before if again else JobRecord.created_at, JobRecord.created_at, JobRecord.id)
    return query.where(_TRIED if again else ~_TRIED).order_by(*order).with_for_update(skip_locked=True)


_SOME_TRIED: Final = Prepared(select(JobRecord.id).where(_TRIED, _UNDER_WAY).limit(1))
_FIRST: Final = {again: _oldest(_IN_ORDER, again=again).limit(1) for again in (False, True)}
_PREPARED_FIRST: Final = {again: Prepared(query) for again, query in _FIRST.items()}
_LINES: Final = Prepared(
    select(
        JobRecord.name.label("kind"),
        *_SHARE[1:],
        _TRIED.label("again"),
        func.count().label("waits"),
        func.min(_SINCE).label("since"),
    )
    .where(_LANE, _DUE, _IN_TURN)
    .group_by(*_SHARE, _TRIED)
)
_OF_LINE: Final = {
    again: Prepared(
        _oldest(
            _IN_TURN,
            JobRecord.name == bindparam("kind"),
            JobRecord.owner_id.is_not_distinct_from(bindparam("owner_id")),
            JobRecord.share.is_not_distinct_from(bindparam("share")),
            again=again,
        ).limit(bindparam("most"))
    )
    for again in (False, True)
}


class WaitingLine(NamedTuple):
    """Jobs that wait for the same turns: how many, and since when. Those tried before, which run `again`, are
    a line of their own. `kind` is None for jobs in order of arrival, of which `first` is the first.
    """

    kind: str | None
    owner_id: int | None
    share: str | None
    again: bool
    waits: int
    since: datetime
    first: str | None = None

    @property
    def levels(self) -> Sequence[tuple[object, ...]]:
        """Who takes turns: the kind, its owner, the owner's share."""
        return self[:1], self[:2], self[:3]


class Batch(NamedTuple):
    """Jobs that a worker has taken for one of its places: one, or several to be handled together."""

    lane: Lane
    records: Sequence[JobRecord]
    together: bool


class Taker:
    """Takes jobs for one worker. `batching` are the kinds that can be handled together in the lane
    ``quick``, `worker_concurrency` is how many jobs of a lane each worker runs at a time.
    """

    def __init__(self, worker: str, batching: Collection[str], worker_concurrency: int) -> None:
        self.worker = worker
        self._batching = batching
        self._concurrency = worker_concurrency
        self._served: defaultdict[tuple[object, ...], int] = defaultdict(int)  # when each was served last
        self._clock = count(1)

    def take(self, unit: Unit, lanes: Iterable[Lane]) -> tuple[list[Batch], float | None]:
        """Take for one place in each of these lanes, where anything is due; and how many seconds it is until
        the next job is due that rests, if one does.
        """
        session, now = unit.session, shared_now(unit.session)
        rests = _SOME_TRIED.first(session, {}) is not None
        batches = [self._next(unit, lane, now, rests=rests) for lane in lanes]
        pause = _until_due(session, now) if rests else None
        return [batch for batch in batches if batch is not None], pause

    def _next(self, unit: Unit, lane: Lane, now: datetime, *, rests: bool) -> Batch | None:
        session, at = unit.session, {"lane": lane, "now": now}
        held_back = self._held_back(session, lane) if rests else set()
        lines = [line for line in _lines_in_turn(session, at) if line[:3] not in held_back]
        lines += _lines_in_order(session, at, held_back, rests=rests)
        active = _active_weights(session, lane) if len(lines) > 1 else {}
        for line in sorted(lines, key=lambda line: self._rank(line, active)):
            together = not line.again and line.kind in self._batching and lane == "quick"
            if together:
                beside = [other for other in lines if other.kind == line.kind and not other.again]
                ids = _within(self._company(session, at, beside, active), BATCH)
            else:
                ids = [line.first] if line.first else [row["id"] for row in _of_line(session, at, line, 1)]
            if ids:  # otherwise another worker is just taking them
                self._serve(line)
                return Batch(lane, claim_all(unit, self.worker, ids), together)
        return None

    def _rank(self, line: WaitingLine, active: Mapping[tuple[object, ...], int]) -> tuple[Any, ...]:
        """The smaller, the sooner its turn; `active` is what each has running."""
        return (*((active.get(level, 0), self._served.get(level, 0)) for level in line.levels), line.since)

    def _serve(self, line: WaitingLine) -> None:
        """Note that it had a turn."""
        if len(self._served) > _REMEMBERED:
            self._served.clear()
        self._served.update(dict.fromkeys(line.levels, next(self._clock)))

    def _company(
        self, session: Session, at: Mapping[str, Any], lines: Sequence[WaitingLine], active: Mapping[Any, int]
    ) -> Iterator[Mapping[str, Any]]:
        """The jobs of one kind whose turns come next."""
        turns = self._next_turns(lines, defaultdict(int, active))
        oldest = {line: iter(_of_line(session, at, line, turns.count(line))) for line in set(turns)}
        for line in turns:
            if (row := next(oldest[line], None)) is not None:
                yield row

    def _next_turns(self, lines: Sequence[WaitingLine], active: defaultdict[Any, int]) -> list[WaitingLine]:
        left = {line: line.waits for line in lines}
        turns: list[WaitingLine] = []
        while left and len(turns) < BATCH:
            line = min(left, key=lambda line: self._rank(line, active))
            turns.append(line)
            for level in line.levels:
                active[level] += 1
            left[line] -= 1
            if not left[line]:
                del left[line]
        return turns

    def _held_back(self, session: Session, lane: Lane) -> set[_Share]:
        """Whose jobs must wait, because some have failed, and they hold all places but one: otherwise they
        would hold every place if what they need never answers.
        """
        there = JobRecord.lane == lane
        failed = select(*_SHARE).where(_TRIED, _UNDER_WAY, there, JobRecord.error.is_not(None))
        troubled: set[_Share] = {row[:3] for row in session.execute(failed.distinct())}
        if not troubled:
            return set()
        # What one place holds was taken at one moment.
        places_in_use = select(*_SHARE, JobRecord.worker, JobRecord.started_at).where(_TAKEN, there)
        theirs = {row[3:] for row in session.execute(places_in_use) if row[:3] in troubled}
        workers = session.scalar(select(func.count()).select_from(WorkerRecord)) or 1
        all_but_one = workers * places(lane, self._concurrency) - 1
        return troubled if len(theirs) >= max(1, all_but_one) else set()


def _until_due(session: Session, now: datetime) -> float | None:
    later = select(func.min(JobRecord.not_before)).where(_TRIED, _UNDER_WAY, JobRecord.not_before > now)
    moment = session.scalar(later)
    return None if moment is None else (moment - now).total_seconds()


def _lines_in_order(
    session: Session, at: Mapping[str, Any], held_back: Collection[_Share], *, rests: bool
) -> list[WaitingLine]:
    """The jobs in order of arrival: new ones, and those tried before."""
    lines = []
    for again in (False, True) if rests else (False,):
        if held_back:
            query = _FIRST[again].where(_not_of(held_back))
            row: Any = session.execute(query, dict(at)).mappings().first()
        else:
            row = _PREPARED_FIRST[again].first(session, at)
        if row is not None:
            lines.append(WaitingLine(None, None, None, again, 1, row["since"], row["id"]))
    return lines


def _not_of(shares: Iterable[_Share]) -> ColumnElement[bool]:
    """The jobs of others than these."""
    pairs = (zip(_SHARE, share, strict=True) for share in shares)
    theirs = (and_(*(column.is_not_distinct_from(value) for column, value in each)) for each in pairs)
    return not_(or_(false(), *theirs))


def _lines_in_turn(session: Session, at: Mapping[str, Any]) -> list[WaitingLine]:
    return [WaitingLine(**{**row, "again": bool(row["again"])}) for row in _LINES.all(session, at)]


def _of_line(
    session: Session, at: Mapping[str, Any], line: WaitingLine, most: int
) -> Sequence[Mapping[str, Any]]:
    """The oldest jobs of a line."""
    which = {"kind": line.kind, "owner_id": line.owner_id, "share": line.share, "most": most}
    return _OF_LINE[line.again].all(session, {**at, **which})


def _within(rows: Iterable[Mapping[str, Any]], most: int) -> list[str]:
    """The ids of as many as weigh at most `most` together, but at least one."""
    ids: list[str] = []
    weight = 0
    for row in rows:
        weight += row["weight"]
        if ids and weight > most:
            break
        ids.append(row["id"])
    return ids


def _active_weights(session: Session, lane: Lane) -> dict[tuple[object, ...], int]:
    """What each kind has running in the lane, and each of its owners and shares anywhere."""
    active: defaultdict[tuple[object, ...], int] = defaultdict(int)
    columns = (*_SHARE, JobRecord.weight, JobRecord.lane, JobRecord.worker, JobRecord.started_at)
    kinds = set()
    for name, owner, share, weight, there, worker, since in session.execute(select(*columns).where(_TAKEN)):
        kind = None if weight is None else name
        if there == lane:
            kinds.add((kind, worker, since))
        if weight is not None:
            active[kind, owner] += weight
            active[kind, owner, share] += weight
    for kind, _, _ in kinds:
        active[kind,] += 1
    return active
