"""Assignments end by the database's clock, whatever the machine that is asked believes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from kernel.testing import Actor, Reply, Running, platforms
from tests.builtin_plugins.tenancy.roles_support import (
    ask_effective,
    assign,
    effective,
    given_to,
    make_role,
    roles_of,
)
from tests.builtin_plugins.tenancy.tenancy_support import (
    give_keys,
    join,
    make_org,
    refused,
    renew,
    somebody,
)
from tests.fakes.own_clock import OwnClock
from tests.fakes.statements import statements

pytestmark = pytest.mark.asyncio(loop_scope="session")

MEMBERS = "org.members.manage"
WRONG = timedelta(minutes=10)  # less than a session lasts


class Place:
    """An organization with its owner and two members, on a machine with a clock of its own."""

    def __init__(
        self, running: Running, clock: OwnClock, org: int, owner: Actor, members: list[Actor]
    ) -> None:
        self.running, self.org, self.owner = running, org, owner
        self.bob, self.eve = members
        self._clock = clock

    async def move(self, difference: timedelta) -> None:
        """Set the machine's clock; sessions are renewed, as they end by it."""
        self._clock.by(difference.total_seconds())
        for actor in (self.owner, self.bob, self.eve):
            await renew(self.running, actor)

    async def asks(self) -> Reply:
        return await ask_effective(self.bob, self.org, self.eve)


@pytest_asyncio.fixture(loop_scope="session")
async def place(tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    clock = OwnClock(monkeypatch)
    async with platforms(tmp_path) as start:
        running = await start("tenancy", env={"DATABASE_URL": postgres_url})
        ann, *members = [await somebody(running) for _ in range(3)]
        org = await make_org(running, ann)
        for actor in members:
            await join(running, org, actor)
        yield Place(running, clock, org, ann, members)


async def test_a_role_that_has_ended_and_a_clock_that_is_behind(place: Place) -> None:
    """It gives nothing, is shown as expired and stands in no way."""
    role = await give_keys(
        place.running, place.org, place.bob, MEMBERS, expires_at=datetime.now(UTC) - timedelta(minutes=1)
    )
    await place.move(-WRONG)
    refused(await place.asks(), 403)
    assert await expired(place) == [True]
    told: Any = (await effective(place.owner, place.org, place.bob, MEMBERS))["explanation"]
    assert [one["reason"] for one in told["obstacles"]] == ["expired"]
    assert (await place.owner.delete(roles_of(place.org, role))).status == 204


async def test_a_role_that_is_valid_and_a_clock_that_is_ahead(place: Place) -> None:
    role = await make_role(place.owner, place.org, MEMBERS)
    await place.move(WRONG)
    until = datetime.now(UTC) + timedelta(minutes=5)
    assert (await assign(place.owner, place.org, place.bob, role["id"], until)).status == 201
    assert (await place.asks()).status == 200
    assert await expired(place) == [False]
    told: Any = await effective(place.owner, place.org, place.bob, MEMBERS)
    assert told["explanation"]["obstacles"] == []
    refused(await place.owner.delete(roles_of(place.org, role["id"])), 409)


async def test_roles_that_end_at_different_times(place: Place) -> None:
    """The clock is read once for all of them, not once for each."""
    looks = []
    for minutes in range(1, 4):
        until = datetime.now(UTC) + timedelta(minutes=minutes)
        await give_keys(place.running, place.org, place.bob, MEMBERS, expires_at=until)
        with statements() as seen:
            assert (await place.asks()).status == 200
        looks.append(sum("SELECT clock_timestamp" in one for one in seen))
    assert looks[0] == looks[-1] > 0


async def expired(place: Place) -> list[bool]:
    """Whether each of Bob's assignments is shown as expired."""
    listed = await place.owner.get(given_to(place.org, place.bob))
    return [one["is_expired"] for one in listed.json()["items"]]
