"""A revocation reaches every process of a platform at once, and no token from before it gets through."""

from __future__ import annotations

import asyncio
import time
from urllib.parse import urlsplit

import jwt
import pytest
from sqlalchemy import delete, insert, update

from kernel.auth.identity import IDENTITY
from kernel.auth.models import Account
from kernel.auth.states import ACCOUNT_STATES, TOPIC
from kernel.db.tables import Notice
from kernel.sdk import Unit
from kernel.sdk.accounts import revoke_sessions
from kernel.testing import Actor, Running, Start
from tests.fakes.network import wire_to
from tests.fakes.rows import execute
from tests.fakes.waiting import eventually

SECRET = {"JWT_SECRET": "a secret of at least thirty-two bytes, for tests"}


async def two(start_platform: Start, database_url: str | None) -> tuple[Running, Running]:
    """Two processes' worth of one platform: one home, one database."""
    env = {**SECRET, "DATABASE_URL": database_url}
    return await start_platform(env=env), await start_platform(env=env)


async def status(running: Running, token: str | None) -> int:
    return (await Actor(running, token).get("/v1/auth/capabilities")).status


async def until_refused(running: Running, token: str | None) -> float:
    async def refused() -> bool:
        return await status(running, token) == 401

    return await eventually(refused, 5)


async def test_what_was_judged_before(start_platform: Start) -> None:
    """A token isn't verified a second time as long as its account, read again, is unchanged."""
    running = await start_platform()
    ana = await running.user("ana")
    assert await status(running, ana.token) == 200
    identity, states = running.platform.resource(IDENTITY), running.platform.resource(ACCOUNT_STATES)
    number, sent = int(ana.user["id"]), f"Bearer {ana.token}"
    states.invalidate(str(number))
    assert identity.recall(sent) is None
    await states.get(number)
    found = identity.recall(sent)
    assert found is not None and found.id == number
    await execute(running.platform.database, update(Account).values(role="admin"))
    states.invalidate(str(number))
    await states.get(number)
    assert identity.recall(sent) is None


async def test_a_remembered_token_expires(start_platform: Start) -> None:
    """What was verified and remembered is refused from the second in which it expires, again and again."""
    running = await start_platform(env=SECRET)
    ana = await running.user("ana")
    secret = SECRET["JWT_SECRET"]
    claims = jwt.decode(ana.token or "", secret, ["HS256"])
    short = jwt.encode({**claims, "exp": int(time.time()) + 2}, secret, "HS256")
    assert await status(running, short) == 200
    await until_refused(running, short)
    assert await status(running, short) == 401


class TestRevocation:
    async def test_in_both_processes(self, start_platform: Start, database_url: str | None) -> None:
        """A changed password ends the sessions here at once, and in the other process within a second."""
        here, there = await two(start_platform, database_url)
        ana = await here.user("ana")
        assert (await status(here, ana.token), await status(there, ana.token)) == (200, 200)
        body = {"current_password": ana.password, "new_password": "battery staple"}
        fresh = (await ana.post("/v1/auth/change-password", json=body)).json()["access_token"]
        assert (await status(here, ana.token), await status(here, fresh)) == (401, 200)
        assert await until_refused(there, ana.token) < 1.5
        assert await status(there, fresh) == 200

    async def test_a_lost_notice(self, start_platform: Start, database_url: str | None) -> None:
        """Even if nobody hears of it, no process believes an old state for longer than two seconds."""
        here, there = await two(start_platform, database_url)
        ana = await here.user("ana")
        assert await status(there, ana.token) == 200
        await execute(here.platform.database, update(Account).values(epoch=Account.epoch + 1))
        assert await until_refused(there, ana.token) < 3

    async def test_deletion(self, start_platform: Start, database_url: str | None) -> None:
        """The token of an account that is gone opens nothing."""
        here, there = await two(start_platform, database_url)
        ana = await here.user("ana")
        await execute(here.platform.database, delete(Account), tell=(TOPIC, str(ana.user["id"])))
        assert await status(here, ana.token) == 401
        assert await until_refused(there, ana.token) < 1.5

    async def test_rolled_back(self, start_platform: Start) -> None:
        running = await start_platform(env=SECRET)
        ana = await running.user("ana")

        def revoke_and_fail(unit: Unit) -> None:
            revoke_sessions(unit, ana.user["id"])
            raise RuntimeError

        with pytest.raises(RuntimeError):
            await running.platform.database.write(revoke_and_fail)
        assert await status(running, ana.token) == 200

    async def test_under_load(self, start_platform: Start) -> None:
        """With requests under way at the moment of the change, none that begins after it gets through."""
        running = await start_platform(env=SECRET)
        ana = await running.user("ana")
        going = True

        async def hammer() -> None:
            while going:
                await status(running, ana.token)

        hammers = [asyncio.create_task(hammer()) for _ in range(8)]
        for _ in range(5):
            ana = await running.sign_in("ana", ana.password)
            await execute(
                running.platform.database,
                update(Account).values(epoch=Account.epoch + 1),
                tell=(TOPIC, str(ana.user["id"])),
            )
            assert await status(running, ana.token) == 401
        going = False
        await asyncio.gather(*hammers)


class TestNotices:
    async def test_nothing_is_missed_in_a_flood(
        self, start_platform: Start, database_url: str | None
    ) -> None:
        here, there = await two(start_platform, database_url)
        heard: set[str] = set()
        there.platform.notices.listen("flood", heard.add)

        async def write(number: int) -> None:
            await here.platform.database.write(lambda unit: unit.notify("flood", str(number)))

        await asyncio.gather(*map(write, range(120)))
        await eventually(lambda: len(heard) == 120, 10)

    async def test_of_a_transaction_that_commits_late(self, start_platform: Start, postgres_url: str) -> None:
        """A notice that got its number early but is committed late is not overlooked."""
        here, there = await two(start_platform, postgres_url)
        heard: list[str] = []
        there.platform.notices.listen("order", heard.append)
        async with here.platform.database.connection() as late:
            await late.execute(insert(Notice).values(topic="order", key="late"))
            await here.platform.database.write(lambda early: early.notify("order", "early"))
            await eventually(lambda: heard == ["early"], 5)
        await eventually(lambda: heard == ["early", "late"], 5)

    async def test_while_the_database_is_away(
        self, start_platform: Start, postgres_url: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """An outage is logged once, and notices are heard again after it."""
        parts = urlsplit(postgres_url)
        async with wire_to(parts.hostname or "", parts.port or 5432) as wire:
            url = postgres_url.replace(f":{parts.port}", f":{wire.port}")
            here = await start_platform(env={**SECRET, "DATABASE_URL": postgres_url})
            there = await start_platform(env={**SECRET, "DATABASE_URL": url})
            heard: list[str] = []
            there.platform.notices.listen("news", heard.append)
            await wire.drop()
            await eventually(lambda: "notices can't be read" in caplog.text, 10)
            # Further rounds of looking, none of which may say it again.
            rounds = wire.refused
            await eventually(lambda: wire.refused >= rounds + 5, 20)
            assert sum("notices" in message for message in caplog.messages) == 1
            await here.platform.database.write(lambda unit: unit.notify("news", "first"))
            wire.restore()
            await eventually(lambda: heard == ["first"], 10)
