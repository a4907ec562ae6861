"""How many questions were asked of knowledge bases per day (UTC), how many were refused, and how the answers
were rated: numbers, without texts and without persons.

Questions are counted in memory and written together; a killed process loses those of the last seconds.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from datetime import date, datetime, timedelta
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import Integer, bindparam, delete, select, update

from builtin_plugins.rag.models import KnowledgeBase, PipelineSource, QuestionDay
from kernel.sdk import Job, NoPayload, Platform, ResourceKey, Tally, Unit, repeating, utc_now
from kernel.sdk.storage import insert_new

Rating = Literal["up", "down"] | None

_FLUSH_SECONDS: Final = 2.0
_KEPT: Final = timedelta(days=400)
_ROWS: Any = QuestionDay.__table__
COUNTED = ("questions", "refused", "up", "down")
_ADD = (
    update(_ROWS)
    .where(_ROWS.c.knowledge_base_id == bindparam("base"), _ROWS.c.day == bindparam("on"))
    .values({name: _ROWS.c[name] + bindparam(f"more_{name}", type_=Integer) for name in COUNTED})
)


class DayCounts(NamedTuple):
    """What is added to a day of a knowledge base."""

    questions: int = 0
    refused: int = 0
    up: int = 0
    down: int = 0


Additions = Mapping[tuple[str, date], DayCounts]


class QuestionCounter:
    """What this process has counted but not written yet."""

    def __init__(self, platform: Platform) -> None:
        self._waiting: Tally[tuple[str, date], DayCounts] = Tally(
            platform.database, "counts of questions", add_to, _sum
        )

    def count(self, bases: Collection[str], *, refused: bool) -> None:
        """Count a question that was just answered, in each knowledge base that was asked."""
        today = utc_now().date()
        for base_id in bases:
            self._waiting.add((base_id, today), DayCounts(1, int(refused)))

    async def flush(self) -> None:
        """Write the counts; those that can't be written are kept for the next time."""
        await self._waiting.flush()


@asynccontextmanager
async def open_question_counter(platform: Platform) -> AsyncIterator[QuestionCounter]:
    """The counter of this process, which writes every few seconds and at the end."""
    counter = QuestionCounter(platform)
    async with repeating("rag questions", counter.flush, _FLUSH_SECONDS):
        yield counter


QUESTIONS: ResourceKey[QuestionCounter] = ResourceKey("rag question counter")


def _sum(earlier: DayCounts, later: DayCounts) -> DayCounts:
    return DayCounts(*(a + b for a, b in zip(earlier, later, strict=True)))


def add_to(unit: Unit, additions: Additions) -> None:
    """Add to the days of knowledge bases; those of a knowledge base that is gone are dropped."""
    wanted = {base_id for base_id, _ in additions}
    known = set(unit.session.scalars(select(KnowledgeBase.id).where(KnowledgeBase.id.in_(wanted))))
    connection = unit.session.connection()
    new = insert_new(QuestionDay, is_sqlite=connection.dialect.name == "sqlite")
    for (base_id, day), counts in sorted(additions.items()):
        if base_id in known:
            empty = dict.fromkeys(COUNTED, 0)
            connection.execute(new.values(knowledge_base_id=base_id, day=day, **empty))
            more = {f"more_{name}": value for name, value in counts._asdict().items()}
            connection.execute(_ADD, {"base": base_id, "on": day, **more})


def count_rating(unit: Unit, pipeline_id: str, asked_at: datetime, former: Rating, rating: Rating) -> None:
    """Implements the hook `count_rating`."""
    if former == rating:
        return
    change = DayCounts(
        up=(rating == "up") - (former == "up"),
        down=(rating == "down") - (former == "down"),
    )
    of_pipeline = select(PipelineSource.knowledge_base_id).where(PipelineSource.pipeline_id == pipeline_id)
    bases = unit.session.scalars(of_pipeline).all()
    add_to(unit, {(base_id, asked_at.date()): change for base_id in bases})


async def forget_old(platform: Platform, _payload: NoPayload) -> None:
    """Once a day: remove figures that are older than 400 days."""
    await platform.database.write(_forget)


def _forget(unit: Unit) -> None:
    unit.session.execute(delete(QuestionDay).where(QuestionDay.day < unit.now().date() - _KEPT))


FORGET_FIGURES = Job("rag.forget_figures", NoPayload, forget_old, schedule="50 3 * * *")
