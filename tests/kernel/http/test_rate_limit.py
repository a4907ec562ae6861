"""The gateway's rate limit: a fixed window in the cache store, by address and subject; it fails open."""

from __future__ import annotations

import time
from urllib.parse import urlsplit

import pytest

from kernel.testing import Running, Start
from tests.fakes.echo import EchoPlugin
from tests.fakes.network import wire_to
from tests.fakes.waiting import eventually

ON = {"RATE_LIMIT_ENABLED": "true"}


@pytest.fixture(params=["memory", "redis"])
def cache(request: pytest.FixtureRequest) -> dict[str, str]:
    """The settings of each cache store."""
    if request.param == "memory":
        return {}
    return {"REDIS_URL": request.getfixturevalue("redis_url")}


async def statuses(running: Running, path: str, count: int) -> list[int]:
    return [(await running.anonymous.get(path)).status for _ in range(count)]


def _wait_for_room(seconds: float) -> None:
    """Do not begin just before the clock's minute ends: the window would start again in mid-test."""
    left = 60 - time.time() % 60
    if left < seconds:
        time.sleep(left)


def _some_network() -> str:
    """A network that no test before counted in: Redis remembers."""
    number = time.time_ns()
    return f"2001:db8:{number % 65536:x}:{number // 65536 % 65536:x}"


class TestGeneralLimit:
    async def test_past_the_limit(self, start_platform: Start, cache: dict[str, str]) -> None:
        """Requests past the allowance are 429 with the seconds that are left, in header and text."""
        _wait_for_room(5)
        home = {"RATE_LIMIT_PER_MINUTE": "3", "TRUSTED_PROXY_CIDRS": "127.0.0.0/8"}
        running = await start_platform(EchoPlugin, env={**ON, **cache, **home})
        address = {"X-Forwarded-For": f"{_some_network()}::1"}
        answers = [await running.anonymous.get("/v1/echo/open", headers=address) for _ in range(5)]
        assert [answer.status for answer in answers] == [200, 200, 200, 429, 429]
        refused = answers[-1]
        assert refused.json()["code"] == "rate_limit_per_minute"
        assert 1 <= int(refused.headers["Retry-After"]) <= 60
        assert refused.json()["code"] == "rate_limit_per_minute"
        other = await running.anonymous.get("/v1/echo/open", headers={"X-Forwarded-For": "203.0.113.77"})
        assert other.status == 200

    async def test_one_client_with_many_addresses(self, start_platform: Start) -> None:
        """A client of IPv6 has a whole network of addresses, and no allowance more for it; nor of a route."""
        _wait_for_room(5)
        env = {**ON, "RATE_LIMIT_PER_MINUTE": "5", "AUTH_RATE_LIMIT_PER_MINUTE": "2"}
        running = await start_platform(EchoPlugin, env={**env, "TRUSTED_PROXY_CIDRS": "127.0.0.0/8"})

        async def calls(method: str, path: str, network: str, times: int) -> list[int]:
            sent = [{"X-Forwarded-For": f"{network}::{number + 1:x}"} for number in range(times)]
            return [
                (await running.anonymous.request(method, path, headers=each, json={})).status for each in sent
            ]

        assert await calls("POST", "/v1/auth/login", "2001:db8:0:1", 3) == [422, 422, 429]
        assert await calls("GET", "/v1/echo/open", "2001:db8:0:1", 3) == [200, 200, 429]
        assert await calls("POST", "/v1/auth/login", "2001:db8:0:2", 1) == [422]

    async def test_unknown_paths_and_bad_tokens_count(self, start_platform: Start) -> None:
        _wait_for_room(5)
        running = await start_platform(EchoPlugin, env={**ON, "RATE_LIMIT_PER_MINUTE": "4"})
        bad = {"Authorization": "Bearer guess"}
        guesses = [(await running.anonymous.get("/v1/echo/open", headers=bad)).status for _ in range(2)]
        assert guesses + await statuses(running, "/nowhere", 3) == [401, 401, 404, 404, 429]

    async def test_accounts_are_counted_apart(self, start_platform: Start) -> None:
        """Two accounts behind one address do not use up each other's allowance, nor the address's."""
        _wait_for_room(8)
        env = {**ON, "RATE_LIMIT_PER_MINUTE": "3", "RATE_LIMIT_ACCOUNT_PER_MINUTE": "5"}
        running = await start_platform(EchoPlugin, env=env)
        ana, bob = await running.user(), await running.user()
        for _ in range(5):
            assert (await ana.get("/v1/echo/private")).status == 200
        refused = await ana.get("/v1/echo/private")
        assert (refused.status, refused.json()["code"]) == (429, "rate_limit_account_per_minute")
        assert 1 <= int(refused.headers["Retry-After"]) <= 60
        assert (await bob.get("/v1/echo/private")).status == 200
        assert await statuses(running, "/v1/echo/open", 2) == [200, 429]

    async def test_an_account_with_many_addresses(self, start_platform: Start) -> None:
        """An account has one allowance, wherever its requests come from."""
        _wait_for_room(8)
        env = {**ON, "RATE_LIMIT_ACCOUNT_PER_MINUTE": "2", "TRUSTED_PROXY_CIDRS": "127.0.0.0/8"}
        running = await start_platform(EchoPlugin, env=env)
        ana = await running.user()
        found = [
            (await ana.get("/v1/echo/private", headers={"X-Forwarded-For": f"203.0.113.{number}"})).status
            for number in range(3)
        ]
        assert found == [200, 200, 429]

    async def test_the_first_minute_of_a_program(self, start_platform: Start) -> None:
        """A signed-in program that asks more than once a second is not held up by the defaults."""
        _wait_for_room(8)
        running = await start_platform(EchoPlugin, env=ON)
        ana = await running.user()
        assert {(await ana.get("/v1/echo/private")).status for _ in range(100)} == {200}

    async def test_exempt_paths(self, start_platform: Start) -> None:
        running = await start_platform("api_docs", env={**ON, "RATE_LIMIT_PER_MINUTE": "1"})
        for path in ("/health", "/metrics", "/docs", "/redoc", "/openapi.json", "/static/docs/page.css"):
            assert 429 not in await statuses(running, path, 3)

    async def test_two_processes_share_one_count(
        self, start_platform: Start, redis_url: str, tmp_path: object
    ) -> None:
        _wait_for_room(5)
        env = {
            **ON,
            "REDIS_URL": redis_url,
            "RATE_LIMIT_PER_MINUTE": "2",
            "TRUSTED_PROXY_CIDRS": "127.0.0.0/8",
        }
        address = {"X-Forwarded-For": f"{_some_network()}::1"}
        one, two = await start_platform(EchoPlugin, env=env), await start_platform(EchoPlugin, env=env)
        found = [
            (await each.anonymous.get("/v1/echo/open", headers=address)).status for each in (one, two, one)
        ]
        assert found == [200, 200, 429]

    async def test_off(self, start_platform: Start) -> None:
        running = await start_platform(
            EchoPlugin, env={"RATE_LIMIT_ENABLED": "false", "RATE_LIMIT_PER_MINUTE": "1"}
        )
        assert set(await statuses(running, "/v1/echo/open", 5)) == {200}


class TestRouteLimit:
    async def test_a_route_of_its_own(self, start_platform: Start) -> None:
        _wait_for_room(5)
        running = await start_platform(EchoPlugin, env={**ON, "RATE_LIMIT_PER_MINUTE": "1000"})
        assert await statuses(running, "/v1/echo/rare", 3) == [200, 200, 429]
        assert await statuses(running, "/v1/echo/open", 3) == [200, 200, 200]

    async def test_login_attempts(self, start_platform: Start) -> None:
        """Guessing passwords is limited per address, and registering apart from it."""
        _wait_for_room(8)
        env = {**ON, "RATE_LIMIT_PER_MINUTE": "1000", "AUTH_RATE_LIMIT_PER_MINUTE": "2"}
        running = await start_platform(env=env)
        guess = {"username": "ana", "password": "guess"}
        found = [(await running.anonymous.post("/v1/auth/login", json=guess)).status for _ in range(3)]
        assert found == [401, 401, 429]
        account = {"username": "ana", "email": "ana@example.org", "password": "long enough"}
        assert (await running.anonymous.post("/v1/auth/register", json=account)).status == 201

    async def test_refreshing_one_account(self, start_platform: Start) -> None:
        """One account can't refresh more than ten times a minute, from wherever."""
        _wait_for_room(10)
        running = await start_platform(env={**ON, "RATE_LIMIT_PER_MINUTE": "1000"})
        ana = await running.user()
        found = [(await ana.post("/v1/auth/refresh")).status for _ in range(11)]
        assert found == [200] * 10 + [429]


class TestFailsOpen:
    async def test_cache_refuses_connections(self, start_platform: Start, redis_url: str) -> None:
        """Without its cache store the gateway serves, quickly, and /health says what is missing."""
        parts = urlsplit(redis_url)
        async with wire_to(parts.hostname or "127.0.0.1", parts.port or 6379) as wire:
            env = {**ON, "REDIS_URL": f"redis://127.0.0.1:{wire.port}", "RATE_LIMIT_PER_MINUTE": "2"}
            running = await start_platform(EchoPlugin, env=env)
            await wire.cut()
            assert await statuses(running, "/v1/echo/open", 5) == [200] * 5
            health = (await running.anonymous.get("/health")).json()
            assert health["status"] == "degraded"
            assert "cache" in health["checks"]["cache"]

    async def test_guessing_stays_limited(self, start_platform: Start, redis_url: str) -> None:
        """A route's own limit guards more than load: without the cache store each process counts alone."""
        _wait_for_room(8)
        parts = urlsplit(redis_url)
        async with wire_to(parts.hostname or "127.0.0.1", parts.port or 6379) as wire:
            url = f"redis://127.0.0.1:{wire.port}"
            running = await start_platform(env={**ON, "REDIS_URL": url, "AUTH_RATE_LIMIT_PER_MINUTE": "2"})
            await wire.cut()
            guess = {"username": "ana", "password": "guess"}
            found = [(await running.anonymous.post("/v1/auth/login", json=guess)).status for _ in range(3)]
        assert found == [401, 401, 429]

    async def test_cache_that_says_nothing(self, start_platform: Start, redis_url: str) -> None:
        """A cache store that swallows everything costs no request more than a moment."""
        parts = urlsplit(redis_url)
        async with wire_to(parts.hostname or "127.0.0.1", parts.port or 6379) as wire:
            env = {**ON, "REDIS_URL": f"redis://127.0.0.1:{wire.port}", "RATE_LIMIT_PER_MINUTE": "2"}
            running = await start_platform(EchoPlugin, env=env)
            wire.mute()
            started = time.monotonic()
            assert await statuses(running, "/v1/echo/open", 10) == [200] * 10
            assert time.monotonic() - started < 2

    async def test_it_counts_again_when_the_cache_is_back(
        self, start_platform: Start, redis_url: str
    ) -> None:
        parts = urlsplit(redis_url)
        async with wire_to(parts.hostname or "127.0.0.1", parts.port or 6379) as wire:
            env = {**ON, "REDIS_URL": f"redis://127.0.0.1:{wire.port}", "RATE_LIMIT_PER_MINUTE": "2"}
            running = await start_platform(EchoPlugin, env=env)

            async def limited() -> bool:
                return (await running.anonymous.get("/v1/echo/open")).status == 429

            await wire.cut()
            assert await statuses(running, "/v1/echo/open", 3) == [200] * 3
            await wire.start()
            await eventually(limited, 10)


@pytest.mark.parametrize("url", ["nonsense", "http://host", "redis://host:notaport"])
async def test_an_unfit_address_stops_the_start(start_platform: Start, url: str) -> None:
    """An address that can't be one of Redis is refused at start and names the variable."""
    from kernel.errors import StartupError

    with pytest.raises(StartupError, match="REDIS_URL"):
        await start_platform(env={"REDIS_URL": url})
