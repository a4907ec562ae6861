"""Guessing is slow, for strangers only; a flood is turned away; nothing tells who has an account."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator
from unittest.mock import patch

import pytest
import pytest_asyncio
from argon2 import PasswordHasher, extract_parameters
from argon2.exceptions import VerifyMismatchError
from sqlalchemy import update

from builtin_plugins.accounts.api import ACCOUNTS
from builtin_plugins.accounts.passwords import WAITING, Passwords, TooManySignIns
from kernel.auth.models import Account
from kernel.testing import Actor, Reply, Running, Start, platforms
from tests.fakes.rows import execute
from tests.fakes.statements import statements

LIMITED = {
    "RATE_LIMIT_ENABLED": "true",
    "RATE_LIMIT_PER_MINUTE": "100000",
    "AUTH_RATE_LIMIT_PER_MINUTE": "100000",
    "TRUSTED_PROXY_CIDRS": "127.0.0.0/8",
}
PASSWORD = "correct horse"
verify = PasswordHasher.verify
together = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """A platform behind a proxy, whose clients differ by address."""
    async with platforms(tmp_path_factory.mktemp("attempts")) as start:
        yield await start(env=LIMITED)


async def sign_in(running: Running, name: str, password: str, address: str) -> Reply:
    body = {"username": name, "password": password}
    return await running.anonymous.post("/v1/auth/login", json=body, headers={"X-Forwarded-For": address})


async def guess(running: Running, name: str, address: str, times: int) -> list[int]:
    return [(await sign_in(running, name, "wrong", address)).status for _ in range(times)]


async def register(running: Running, name: str) -> None:
    await running.platform.resource(ACCOUNTS).register(name, f"{name}@example.org", PASSWORD)


@pytest.fixture
def quick_hashing() -> Iterator[None]:
    """What is told apart here is who asks how often; hundreds of hashes would take minutes."""

    def compare(_hasher: PasswordHasher, _stored: str, password: str) -> bool:
        if password != PASSWORD:
            raise VerifyMismatchError
        return True

    with patch.object(PasswordHasher, "verify", compare):
        yield


@pytest.mark.usefixtures("quick_hashing")
@together
class TestGuessing:
    async def test_one_address(self, shared: Running) -> None:
        """After ten tries, an address has to wait, even with the right password."""
        await register(shared, "ana")
        assert await guess(shared, "ana", "192.0.2.1", 11) == [401] * 10 + [429]
        answer = await sign_in(shared, "ANA", PASSWORD, "192.0.2.1")
        assert (answer.status, answer.json()["code"]) == (429, "rate_limited")
        assert int(answer.headers["Retry-After"]) > 0

    async def test_another_address(self, shared: Running) -> None:
        """What one address does refuses no other: the owner gets in from a new one."""
        await register(shared, "bob")
        await guess(shared, "bob", "192.0.2.1", 11)
        assert (await sign_in(shared, "bob", PASSWORD, "192.0.2.2")).status == 200

    async def test_a_known_address(self, shared: Running) -> None:
        """An address that once signed in is never refused, however many wrong tries come from it."""
        await register(shared, "cyd")
        assert (await sign_in(shared, "cyd", PASSWORD, "192.0.2.1")).status == 200
        assert await guess(shared, "cyd", "192.0.2.1", 15) == [401] * 15
        assert (await sign_in(shared, "cyd", PASSWORD, "192.0.2.1")).status == 200

    async def test_known_for_one_account_only(self, shared: Running) -> None:
        """Having an account of one's own opens no way to guess at others."""
        await register(shared, "dan")
        await register(shared, "eve")
        assert (await sign_in(shared, "eve", PASSWORD, "192.0.2.3")).status == 200
        assert await guess(shared, "dan", "192.0.2.3", 11) == [401] * 10 + [429]

    async def test_many_addresses(self, shared: Running) -> None:
        """While many addresses guess at one name each has three tries; the owner's first still counts."""
        await register(shared, "fay")
        for number in range(10):
            await guess(shared, "fay", f"198.51.100.{number}", 10)
        assert await guess(shared, "fay", "203.0.113.1", 4) == [401, 401, 401, 429]
        assert (await sign_in(shared, "fay", PASSWORD, "203.0.113.2")).status == 200

    async def test_one_network(self, shared: Running) -> None:
        """A client of IPv6 has a whole network of addresses, and counts as one."""
        await register(shared, "gus")
        statuses = [(await guess(shared, "gus", f"2001:db8::{n:x}", 1))[0] for n in range(1, 12)]
        assert statuses == [401] * 10 + [429]
        assert (await sign_in(shared, "gus", PASSWORD, "2001:db8:0:1::1")).status == 200

    async def test_at_once(self, shared: Running) -> None:
        """Tries at the same moment count as well as one after another."""
        await register(shared, "hal")
        calls = (sign_in(shared, "hal", "wrong", "192.0.2.1") for _ in range(15))
        statuses = [answer.status for answer in await asyncio.gather(*calls)]
        assert sorted(statuses) == [401] * 10 + [429] * 5

    async def test_an_unknown_name(self, shared: Running) -> None:
        assert await guess(shared, "nobody", "192.0.2.1", 11) == [401] * 10 + [429]


@pytest.mark.usefixtures("quick_hashing")
async def test_in_all_processes(start_platform: Start, redis_url: str) -> None:
    """With Redis tries are counted together, and a known address is known everywhere."""
    env = {**LIMITED, "REDIS_URL": redis_url}
    here, there = await start_platform(env=env), await start_platform(env=env)
    name = f"ina-{here.url.rpartition(':')[2]}-{id(here)}"
    await register(here, name)
    assert await guess(here, name, "192.0.2.1", 6) == [401] * 6
    assert await guess(there, name, "192.0.2.1", 5) == [401] * 4 + [429]
    assert (await sign_in(here, name, PASSWORD, "192.0.2.2")).status == 200
    assert await guess(there, name, "192.0.2.2", 11) == [401] * 11


@together
class TestEnumeration:
    async def test_the_same_work(self, shared: Running) -> None:
        """Wrong passwords of known, SSO and unknown names: one answer, one hashing, the same statements."""
        await register(shared, "kim")
        await register(shared, "lee")
        linked = {"sso_issuer": "i", "sso_subject": "s", "password_hash": None}
        await execute(
            shared.platform.database, update(Account).where(Account.username == "lee").values(**linked)
        )
        seen = {}
        for name in ("kim", "kim@example.org", "lee", "nobody-2", "nobody@example.org"):
            hasher = patch.object(PasswordHasher, "verify", autospec=True, side_effect=verify)
            with hasher as hashing, statements() as done:
                answer = await sign_in(shared, name, "wrong", "192.0.2.9")
            hashed = [extract_parameters(call.args[1]) for call in hashing.call_args_list]
            seen[name] = (answer.status, answer.body, *map(repr, hashed), tuple(done))
        assert len(set(seen.values())) == 1, seen
        assert seen["kim"][0] == 401 and len(seen["kim"]) == 4  # one hash of the same cost each


@pytest.mark.parametrize(("env", "kib"), [({}, 65536), ({"PLATFORM_PASSWORD_MEMORY_MB": "16"}, 16384)])
async def test_cost(start_platform: Start, env: dict[str, str], kib: int) -> None:
    """What RFC 9106 recommends, or what the setting says, for what is kept and for names that nobody has."""
    running = await start_platform(env={"PLATFORM_PASSWORD_MEMORY_MB": None, **env})
    with patch.object(PasswordHasher, "verify", autospec=True, side_effect=verify) as hashing:
        await running.user("ana")
        await sign_in(running, "nobody", "wrong", "192.0.2.9")
    costs = [extract_parameters(call.args[1]) for call in hashing.call_args_list]
    assert [(cost.memory_cost, cost.time_cost, cost.parallelism) for cost in costs] == [(kib, 3, 1)] * 2


class TestFlood:
    async def test_turned_away(self, start_platform: Start) -> None:
        """Past those that can wait, sign-ins are 503 at once; who is signed in waits his turn instead."""
        running = await start_platform()
        ana = await running.user("ana")
        gate = threading.Event()

        def slow(hasher: PasswordHasher, stored: str, password: str) -> bool:
            gate.wait(30)
            if password == "wrong":
                raise VerifyMismatchError
            return verify(hasher, stored, password)

        def log_in() -> asyncio.Task[Reply]:
            body = {"username": "nobody", "password": "wrong"}
            return asyncio.create_task(running.anonymous.post("/v1/auth/login", json=body))

        with patch.object(PasswordHasher, "verify", slow):
            flood = [log_in() for _ in range(WAITING + (os.cpu_count() or 2) + 5)]
            await asyncio.wait(flood, return_when=asyncio.FIRST_COMPLETED)
            change = {"current_password": ana.password, "new_password": "battery staple"}
            changing = asyncio.create_task(ana.post("/v1/auth/change-password", json=change))
            assert (await running.anonymous.get("/health")).status == 200
            gate.set()
            answers = await asyncio.gather(*flood)
            assert (await changing).status == 200
        refused = [answer for answer in answers if answer.status == 503]
        assert {answer.status for answer in answers} == {401, 503} and len(refused) >= 5
        assert refused[0].json()["code"] == "too_many_sign_ins"
        assert int(refused[0].headers["Retry-After"]) > 0

    async def test_a_client_that_leaves(self) -> None:
        passwords = Passwords()
        waiting: list[asyncio.Task[bool]] = []
        refused = False
        while not refused:
            waiting.append(asyncio.create_task(passwords.verify(None, "x", anonymous=True)))
            await asyncio.sleep(0)
            refused = waiting[-1].done()
        assert isinstance(waiting[-1].exception(), TooManySignIns)
        for task in waiting[:-1]:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert await passwords.verify(None, "x", anonymous=True) is False
        passwords.close()


class TestRefresh:
    async def refreshes(self, actor: Actor, times: int) -> list[int]:
        return [(await actor.post("/v1/auth/refresh")).status for _ in range(times)]

    async def test_of_an_account(self, start_platform: Start) -> None:
        """Ten in a minute for one account, wherever they come from; other accounts are not touched."""
        running = await start_platform(env=LIMITED)
        ana, bob = await running.user("ana"), await running.user("bob")
        again = await running.sign_in("ana", ana.password)
        assert await self.refreshes(ana, 6) + await self.refreshes(again, 5) == [200] * 10 + [429]
        assert await self.refreshes(bob, 1) == [200]

    async def test_of_a_client(self, start_platform: Start) -> None:
        """Sixty in a minute for one client address, whatever it sends."""
        running = await start_platform(env=LIMITED)
        assert await self.refreshes(Actor(running, "garbage"), 61) == [401] * 60 + [429]

    async def test_dead_tokens_use_up_nothing(self, start_platform: Start) -> None:
        """Whoever holds a revoked token of an account can't keep its owner from refreshing."""
        running = await start_platform(env=LIMITED)
        stolen = await running.user("ana")
        body = {"current_password": stolen.password, "new_password": "battery staple"}
        assert (await stolen.post("/v1/auth/change-password", json=body)).status == 200
        ana = await running.sign_in("ana", "battery staple")
        assert await self.refreshes(stolen, 15) == [401] * 15
        assert await self.refreshes(ana, 10) == [200] * 10
