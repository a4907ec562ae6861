"""Statements that are compiled once: the same rows as the ordinary way, on both databases."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import JSON, Boolean, Integer, String, bindparam, func, literal, or_, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Mapped, Session, mapped_column

from kernel.db.engine import Database
from kernel.sdk import Prepared, Scope, Unit, UtcDateTime, plugin_base
from kernel.sdk.accounts import visible
from kernel.sdk.storage import Record, page_of, read_page
from kernel.settings.loading import KernelSettings
from tests.fakes.statements import listening

Base: Any = plugin_base("garden")
PLANTED = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


class Plant(Base):
    """A row with a column of each kind that is stored otherwise than it is read."""

    __tablename__ = "garden_plant"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(50))
    planted_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    is_tree: Mapped[bool] = mapped_column(Boolean)
    needs: Mapped[Any] = mapped_column(JSON)
    owner_id: Mapped[int | None] = mapped_column(Integer)
    visibility: Mapped[str] = mapped_column(String(16))
    team_id: Mapped[int | None] = mapped_column(Integer)
    organization_id: Mapped[int | None] = mapped_column(Integer)
    water: Mapped[str] = mapped_column(String(16), default="weekly")
    seen_at: Mapped[datetime] = mapped_column(UtcDateTime, default=lambda: PLANTED)


PLANT: Any = Plant.__table__
NAMED = Prepared(select(PLANT).where(PLANT.c.name == bindparam("name")))
SEEN = page_of(select(PLANT.c.id, PLANT.c.name).where(visible(PLANT.c)), "name", "id")


@pytest.fixture
async def database(tmp_path: Path, database_url: str | None) -> AsyncIterator[Database]:
    """A garden with an oak, a rose of account 1, a lily of team 7, and a fern of nobody's for team 8."""
    database = Database(KernelSettings(home=tmp_path, database_url=database_url).sqlalchemy_url)
    async with database.schema_change() as connection:
        await connection.run_sync(Base.metadata.create_all)
    await database.write(fill)
    yield database
    await database.close()


def fill(unit: Unit) -> None:
    rows: list[dict[str, Any]] = [
        {"name": "oak", "visibility": "shared", "is_tree": True, "planted_at": PLANTED, "needs": ["sun"]},
        {"name": "rose", "visibility": "private"},
        {"name": "lily", "visibility": "team", "owner_id": 2, "team_id": 7},
        {"name": "fern", "visibility": "team", "owner_id": None, "team_id": 8},
    ]
    for row in rows:
        unit.session.add(Plant(**{"owner_id": 1, "is_tree": False, "needs": None, **row}))


async def test_values_as_the_ordinary_way_reads_them(database: Database) -> None:
    """Times, truth values, JSON and nulls come back as their types say, in both kinds of units."""
    for name in ("oak", "rose"):
        row = await database.read(NAMED.first, {"name": name})
        ordinary = select(PLANT).where(PLANT.c.name == name)
        known = await database.read(
            lambda session, query=ordinary: dict(session.execute(query).mappings().one())
        )
        assert row == known
        assert await database.write(lambda unit, name=name: NAMED.first(unit.session, {"name": name})) == row
    assert await database.read(NAMED.first, {"name": "elm"}) is None


async def test_a_name_is_a_value(database: Database) -> None:
    """What looks like SQL is looked for, not run."""
    assert await database.read(NAMED.all, {"name": "oak' OR 'a' = 'a"}) == []


async def test_who_sees_what(database: Database) -> None:
    """The scope's values stand in the statement: each caller gets its own rows and their number."""

    async def seen(scope: Scope, limit: int = 50, offset: int = 0) -> tuple[list[str], int]:
        rows, total = await database.read(read_page, SEEN, {**scope.binds, "limit": limit, "offset": offset})
        return [row["name"] for row in rows], total

    assert await seen(Scope(1)) == (["oak", "rose"], 2)
    assert await seen(Scope(3, teams=(6, 7))) == (["lily", "oak"], 2)
    assert await seen(Scope(3)) == (["oak"], 1)
    assert await seen(Scope(3, teams=(8,))) == (["fern", "oak"], 2)
    assert await seen(Scope(None)) == (["oak"], 1)
    assert await seen(Scope(3, everything=True), limit=1, offset=2) == (["oak"], 4)
    assert await seen(Scope(1), offset=5) == ([], 2)
    assert await seen(Scope(None, nothing=True)) == ([], 0)


def test_who_may_change_what_has_no_owner() -> None:
    """Only who may change everything; a caller without an account doesn't own what nobody owns."""
    fern, rose = Plant(owner_id=None), Plant(owner_id=1)
    assert [scope.owns(fern) for scope in (Scope(1), Scope(None), Scope(None, nothing=True))] == [False] * 3
    assert Scope(None, everything=True).owns(fern)
    assert (Scope(1).owns(rose), Scope(2).owns(rose)) == (True, False)


async def test_one_state_for_several(database: Database) -> None:
    """Inside a snapshot prepared statements and others see what the first of them saw."""

    def twice(session: Session) -> tuple[list[Record], int | None]:
        before = NAMED.all(session, {"name": "elm"})
        asyncio.run_coroutine_threadsafe(database.write(add_elm), loop).result(10)
        assert NAMED.all(session, {"name": "elm"}) == before
        return before, session.scalar(select(func.count()).where(Plant.name == "elm"))

    loop = asyncio.get_running_loop()
    if database.is_sqlite:  # a thread; on PostgreSQL the function runs in the loop
        assert await database.snapshot(twice) == ([], 0)
        assert await database.read(NAMED.first, {"name": "elm"}) is not None


def add_elm(unit: Unit) -> None:
    unit.session.add(Plant(name="elm", owner_id=1, visibility="private", is_tree=True, needs=None))


async def test_errors_are_those_of_the_ordinary_way(database: Database) -> None:
    """A missing table raises SQLAlchemy's error, and the next read works."""
    async with database.schema_change() as connection:
        await connection.run_sync(Base.metadata.drop_all)
    with pytest.raises(SQLAlchemyError):
        await database.read(NAMED.first, {"name": "oak"})
    async with database.schema_change() as connection:
        await connection.run_sync(Base.metadata.create_all)
    assert await database.read(NAMED.first, {"name": "oak"}) is None


async def test_a_value_that_is_missing(database: Database) -> None:
    """A parameter without a value is an error, never a null."""
    with pytest.raises((SQLAlchemyError, KeyError)):
        await database.read(NAMED.first, {})


async def test_a_list_as_a_value(tmp_path: Path) -> None:
    """A parameter whose number of values is part of the text is refused where the text is fixed."""
    database = Database(f"sqlite+aiosqlite:///{tmp_path}/test.db")
    several = Prepared(select(PLANT.c.id).where(or_(PLANT.c.id.in_(bindparam("ids", expanding=True)))))
    with pytest.raises(TypeError, match="ids"):
        await database.read(several.all, {"ids": [1, 2]})
    await database.close()


async def test_a_value_in_the_statement(tmp_path: Path) -> None:
    """One that is stored otherwise than it is written has to be given by its name."""
    database = Database(f"sqlite+aiosqlite:///{tmp_path}/test.db")
    since = Prepared(select(PLANT.c.id).where(PLANT.c.planted_at > PLANTED))
    with pytest.raises(TypeError, match="bindparam"):
        await database.read(since.all, {})
    await database.close()


def counted(up_to: int) -> Prepared:
    """Counts, which takes SQLite a dozen steps for each number."""
    numbers = select(literal(1).label("n")).cte("numbers", recursive=True)
    numbers = numbers.union_all(select(numbers.c.n + 1).where(numbers.c.n < bindparam("up_to", up_to)))
    return Prepared(select(func.count().label("count")).select_from(numbers))


async def test_where_it_is_read(tmp_path: Path) -> None:
    """SQLite is read in the event loop as long as that takes a moment; a longer read ends in a thread."""
    threads: list[threading.Thread] = []
    database = Database(f"sqlite+aiosqlite:///{tmp_path}/test.db")
    await database.ping()
    listen = lambda *_: threads.append(threading.current_thread())  # noqa: E731
    try:
        with listening(listen):
            assert await database.read(counted(10).first, {}) == {"count": 10}
            assert threads == [threading.main_thread()]
            assert await database.read(counted(300_000).first, {}) == {"count": 300_000}
            assert threads[:2] == [threading.main_thread()] * 2
            assert threads[2].name.startswith("db-read")
    finally:
        await database.close()
