"""Notices: each listener hears of each commit, whoever else fails, and what is old is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, update

from kernel.db.base import utc_now
from kernel.db.engine import Database
from kernel.db.tables import Notice
from kernel.db.wakeups import wakeups_for
from kernel.events.notices import Notices, forget_old_notices
from kernel.settings.loading import KernelSettings
from kernel.testing import eventually
from kernel.testing.databases import copy_sqlite


def notices_of(database: Database, home: Path) -> Notices:
    return Notices(wakeups_for(database.url, home))


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    copy_sqlite(tmp_path, ())
    opened = Database(KernelSettings(home=tmp_path).sqlalchemy_url)
    yield opened
    await opened.close()


async def test_by_topic(database: Database, tmp_path: Path) -> None:
    """Who listens to a topic hears its keys in order, and nothing of other topics."""
    notices, heard = notices_of(database, tmp_path), list[str]()
    notices.listen("shelf", heard.append)
    for topic, key in (("shelf", "1"), ("book", "2"), ("shelf", "3")):
        notices.deliver(topic, key)
    assert heard == ["1", "3"]


async def test_a_listener_that_fails(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The others hear all the same, and the log names the topic."""
    notices, heard = notices_of(database, tmp_path), list[str]()

    def fail(key: str) -> None:
        raise ValueError(key)

    notices.listen("shelf", fail)
    notices.listen("shelf", heard.append)
    notices.deliver("shelf", "1")
    assert heard == ["1"] and "'shelf'" in caplog.text


async def test_for_the_time_of_a_block(database: Database, tmp_path: Path) -> None:
    """Whoever stops listening hears no more, also when the block failed."""
    notices, heard = notices_of(database, tmp_path), list[str]()
    with pytest.raises(KeyError), notices.listening("shelf", heard.append):
        notices.deliver("shelf", "1")
        raise KeyError
    notices.deliver("shelf", "2")
    assert heard == ["1"]


async def test_of_another_process(database: Database, tmp_path: Path) -> None:
    """Each notice that is committed after the start is heard once; what was there before is not."""
    await database.write(lambda unit: unit.session.add(Notice(topic="shelf", key="before")))
    notices, heard = notices_of(database, tmp_path), list[str]()
    notices.listen("shelf", heard.append)
    await notices.start(database)
    try:
        await database.write(lambda unit: unit.session.add_all(Notice(topic="shelf", key=k) for k in "012"))
        await eventually(lambda: len(heard) == 3)
    finally:
        await notices.stop()
    assert heard == ["0", "1", "2"]


async def test_nobody_hears_after_the_end(database: Database, tmp_path: Path) -> None:
    first, second = notices_of(database, tmp_path), notices_of(database, tmp_path)
    heard: dict[Notices, list[str]] = {first: [], second: []}
    for one in (first, second):
        one.listen("shelf", heard[one].append)
        await one.start(database)
    await first.stop()
    await database.write(lambda unit: unit.session.add(Notice(topic="shelf", key="1")))
    await eventually(lambda: heard[second] == ["1"])
    await second.stop()
    assert heard[first] == []
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "notices"]


async def test_old_ones_are_forgotten(database: Database) -> None:
    """After an hour, when every process has heard of them long ago."""
    await database.write(lambda unit: unit.session.add_all(Notice(topic="t", key=str(n)) for n in range(3)))
    old = update(Notice).where(Notice.key == "0").values(created_at=utc_now() - timedelta(hours=1, minutes=1))
    young = update(Notice).where(Notice.key == "1").values(created_at=utc_now() - timedelta(minutes=59))
    for statement in (old, young):
        await database.write(lambda unit, it=statement: unit.session.execute(it) and None)  # type: ignore[misc]
    await database.write(forget_old_notices)
    kept = await database.read(lambda session: list(session.scalars(select(Notice.key).order_by(Notice.id))))
    assert kept == ["1", "2"]
