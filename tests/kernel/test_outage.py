"""A database that goes away while the platform runs: honest answers meanwhile, and no restart afterwards."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from sqlalchemy import func, select

from kernel.auth.models import Account
from kernel.sdk import Platform, Plugin, Service, hookimpl
from kernel.testing import Running, Start, environment
from tests.fakes.processes import platformctl

ALICE = {"username": "alice", "password": "a password of hers"}


class Server:
    """The PostgreSQL server, as its operator sees it."""

    def __init__(self, url: str) -> None:
        self._server, _, self._name = url.rpartition("/")

    async def close(self) -> None:
        """Let nobody in, and send away who is there."""
        await self._say(f"ALTER DATABASE {self._name} ALLOW_CONNECTIONS false")
        await self._say(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{self._name}'"
        )

    async def open(self) -> None:
        await self._say(f"ALTER DATABASE {self._name} ALLOW_CONNECTIONS true")

    async def make_read_only(self) -> None:
        await self._say(f"ALTER DATABASE {self._name} SET default_transaction_read_only = on")
        await self._say(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{self._name}'"
        )

    async def _say(self, statement: str) -> None:
        connection = await asyncpg.connect(f"{self._server}/postgres")
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


async def sign_in(running: Running) -> tuple[int, bytes]:
    answer = await running.anonymous.post("/v1/auth/login", json=ALICE)
    return answer.status, answer.body


async def test_a_server_that_lets_nobody_in(start_platform: Start, postgres_url: str) -> None:
    """503 without the driver's words, an honest health, a status that never fails; then all is well."""
    running = await start_platform(env={"DATABASE_URL": postgres_url})
    await running.anonymous.post("/v1/auth/register", json={**ALICE, "email": "alice@example.com"})
    server = Server(postgres_url)
    await server.close()
    status, text = await sign_in(running)
    assert status == 503
    assert b"accepting" not in text
    health = await running.anonymous.get("/health")
    assert (health.status, health.json()["status"]) == (503, "unhealthy")
    assert (await running.anonymous.get("/v1/status")).status == 200
    await server.open()
    assert (await sign_in(running))[0] == 200


async def test_who_signed_in_is_not_limited_as_a_stranger(start_platform: Start, postgres_url: str) -> None:
    """Without a database nobody can be recognized, so the limit for strangers is not applied."""
    env = {"RATE_LIMIT_ENABLED": "true", "RATE_LIMIT_PER_MINUTE": "5", "PLATFORM_ACCOUNT_CACHE_SECONDS": "0"}
    running = await start_platform(env={"DATABASE_URL": postgres_url, **env})
    alice = await running.user("alice")
    await Server(postgres_url).close()
    assert {(await alice.get("/v1/auth/users/1")).status for _ in range(20)} == {503}


async def test_a_server_that_takes_no_writes(
    start_platform: Start, postgres_url: str, tmp_path: Path
) -> None:
    """A read-only database makes writes 503; `/health` and `doctor` say that it is read-only."""
    env = {"DATABASE_URL": postgres_url}
    running = await start_platform(env=env)
    await Server(postgres_url).make_read_only()
    health = await running.anonymous.get("/health")
    assert (health.status, health.json()["status"]) == (503, "unhealthy")
    assert "read-only" in health.json()["checks"]["database"]
    answer = await running.anonymous.post("/v1/auth/register", json={**ALICE, "email": "alice@example.com"})
    assert (answer.status, answer.json()["code"]) == (503, "unavailable")
    assert "read-only" in answer.detail
    doctor = environment(tmp_path / "other", env)
    result = await asyncio.to_thread(platformctl, "doctor", "--json", env=doctor)
    found = {item["check"]: item for item in json.loads(result.stdout)}
    assert (result.returncode, found["database"]["status"]) == (1, "failed")
    assert "read-only" in found["database"]["text"]


async def test_an_outage_fills_no_log(
    start_platform: Start, postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Each request that a lost database refuses is one line in the log, without a traceback."""
    running = await start_platform(env={"DATABASE_URL": postgres_url})
    await Server(postgres_url).close()
    caplog.clear()
    assert [(await sign_in(running))[0] for _ in range(2)] == [503, 503]
    told = [line for line in caplog.records if "store is unreachable" in line.getMessage()]
    assert len(told) == 2 and [line for line in told if line.exc_info] == []


class CountingPlugin(Plugin):
    """A service whose health has a figure from the database."""

    name = "counting"

    @hookimpl
    def register_services(self) -> list[Service]:
        return [Service("rag-pipeline", [], "1", health_extra=_count)]


async def _count(platform: Platform) -> dict[str, Any]:
    return await platform.database.read(
        lambda session: {"accounts": session.scalar(select(func.count()).select_from(Account))}
    )


@pytest.mark.parametrize(
    ("only", "path", "status"), [(None, "/v1/status", 200), ("rag-pipeline", "/health", 503)]
)
async def test_a_service_that_can_not_count(
    start_platform: Start, postgres_url: str, only: str | None, path: str, status: int
) -> None:
    """The health of a service that reads its figures from the database is answered without them."""
    running = await start_platform(CountingPlugin, env={"DATABASE_URL": postgres_url}, only=only)
    await Server(postgres_url).close()
    answer = await running.anonymous.get(path)
    assert answer.status == status
    assert b"unhealthy" in answer.body
    assert b"accounts" not in answer.body


async def test_a_session_is_no_bad_credential_meanwhile(start_platform: Start, postgres_url: str) -> None:
    """The answer is 503, because on 401 clients throw their session away."""
    running = await start_platform(
        env={"DATABASE_URL": postgres_url, "PLATFORM_ACCOUNT_CACHE_SECONDS": "0.05"}
    )
    await running.anonymous.post("/v1/auth/register", json={**ALICE, "email": "alice@example.com"})
    alice = await running.sign_in(ALICE["username"], ALICE["password"])
    server = Server(postgres_url)
    await server.close()
    await asyncio.sleep(0.1)  # until what is remembered of the account is too old
    answer = await alice.get("/v1/permissions")
    assert (answer.status, answer.json()["code"]) == (503, "unavailable")
    await server.open()
    assert (await alice.get("/v1/permissions")).status == 200
