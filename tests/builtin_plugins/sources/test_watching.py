"""Sources that say themselves when something has changed there."""

from __future__ import annotations

from typing import Any

import pytest

from builtin_plugins.sources.api import SourceUnreachable
from builtin_plugins.sources.services.watching import SOURCE_WATCHES, SourceWatches
from tests.builtin_plugins.sources.conftest import Desk
from tests.fakes.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def source_out(desk: Desk) -> dict[str, Any]:
    return dict((await desk.ann.get(desk.path())).json())


async def count_runs(desk: Desk, least: int) -> bool:
    """Whether the source has had so many runs because it said that something has changed."""
    await desk.running.run_jobs()
    runs = (await desk.ann.get(desk.path("/runs"))).json()["items"]
    return len([one for one in runs if one["trigger"] == "push"]) >= least


async def test_a_change_begins_a_run(desk: Desk) -> None:
    """The watch begins with one, too; of several processes, one watches."""
    watches = desk.running.platform.resource(SOURCE_WATCHES)
    desk.shelf.contents = {"a.txt": b"First."}
    await desk.add(schedule="@daily")
    assert desk.source in await watches.look()
    assert await SourceWatches(desk.running.platform).look() == []
    await eventually(lambda: count_runs(desk, 1))
    desk.shelf.contents["b.txt"] = b"Second."
    desk.shelf.changes.set()
    await eventually(lambda: count_runs(desk, 2))
    assert set(await desk.documents()) == {"a.txt", "b.txt"}
    now = await source_out(desk)
    assert (now["is_watched"], now["watch_problem"]) == (True, None)
    assert (await desk.ann.patch(desk.path(), json={"schedule": None})).status == 200
    assert desk.source not in await watches.look()


async def test_a_source_that_cannot_be_watched_says_why(desk: Desk) -> None:
    def refuse() -> None:
        raise SourceUnreachable("shelf.example.org reports no changes")

    desk.shelf.watching = refuse
    await desk.add(schedule="@daily")
    await desk.running.platform.resource(SOURCE_WATCHES).look()

    async def says() -> bool:
        return (await source_out(desk))["watch_problem"] == "shelf.example.org reports no changes"

    await eventually(says)
    assert (await source_out(desk))["is_watched"] is False
