"""How many deliveries are taken: plenty of what proves itself, few of everything else, counted apart."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from kernel.testing import Reply, Running, Start
from tests.builtin_plugins.manifest_webhooks.webhook_support import drop, github_headers, manifest, send
from tests.fakes.hash_embeddings import HashEmbeddings

KEY = b"a secret of the operator's choice"
BODY = json.dumps({"text": "x"}).encode()
LIMITED = {"RATE_LIMIT_ENABLED": "true"}


async def notes(start_platform: Start, home: Path, env: dict[str, str] | None = None, **of: Any) -> Running:
    """A platform with limits, a signed manifest at /notes and an open one at /open."""
    drop(home / "manifests", "a.yaml", manifest(secret="notes.key"))
    drop(home / "manifests", "b.yaml", manifest("open", "/open"))
    running = await start_platform(
        "manifest_webhooks", HashEmbeddings(), env={**LIMITED, **(env or {})}, **of
    )
    running.platform.secrets.set("notes.key", KEY.decode())
    return running


async def deliver(running: Running, number: int, key: bytes = KEY) -> Reply:
    return await send(running.anonymous, "/notes", BODY, github_headers(key, BODY, f"d{number}"))


def of_windows(statuses: list[int], good: int, limit: int) -> None:
    """So many `good` answers, then 429. A minute may turn over meanwhile, which opens one more window."""
    counts = Counter(statuses)
    assert set(counts) == {good, 429} and counts[good] in (limit, 2 * limit), counts


async def test_strangers(start_platform: Start, platform_home: Path) -> None:
    """Without a secret, with a wrong signature, on an unknown path: ten a minute for address and path."""
    running = await notes(start_platform, platform_home)
    opened = [(await send(running.anonymous, "/open", {"text": "x"})).status for _ in range(22)]
    of_windows(opened, 200, 10)
    wrong = [(await deliver(running, n, b"wrong")).status for n in range(22)]
    of_windows(wrong, 401, 10)
    unknown = [(await send(running.anonymous, f"/no-{n}", {"text": "x"})).status for n in range(22)]
    of_windows(unknown, 404, 10)
    last = await deliver(running, 23, b"wrong")
    assert last.status == 429 and 0 < int(last.headers["Retry-After"]) <= 60
    assert last.json()["code"] == "rate_limited"


async def test_strangers_use_up_nothing(start_platform: Start, platform_home: Path) -> None:
    """An address is refused for what it can't prove, and not for what it proves, far beyond 60 a minute."""
    running = await notes(start_platform, platform_home)
    for number in range(22):
        await deliver(running, number, b"wrong")
    answers = await asyncio.gather(*(deliver(running, number) for number in range(100)))
    assert Counter(answer.status for answer in answers) == {200: 100}


async def test_slow_senders(start_platform: Start, platform_home: Path) -> None:
    """Bodies that dribble in hold up no other delivery: only an address that was refused waits its turn."""
    running = await notes(start_platform, platform_home)
    port = int(running.url.rpartition(":")[2])
    async with AsyncExitStack() as stack:
        for number in range(8):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            stack.callback(writer.close)
            given = {**github_headers(KEY, BODY, f"slow{number}"), "Host": "x", "Content-Length": len(BODY)}
            lines = ["POST /webhook/notes HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
            writer.write("\r\n".join([*lines, "", BODY.decode()[:1]]).encode())
            await writer.drain()
        async with asyncio.timeout(30):
            assert (await deliver(running, 9)).status == 200


async def test_proven_limit(start_platform: Start, platform_home: Path) -> None:
    """Beyond the limit of a manifest and its burst even a signed delivery is 429; others are not touched."""
    env = {"PLATFORM_WEBHOOK_PROVEN_PER_MINUTE": "6", "PLATFORM_WEBHOOK_PROVEN_BURST": "4"}
    running = await notes(start_platform, platform_home, env)
    statuses = [(await deliver(running, number)).status for number in range(30)]
    counts = Counter(statuses)
    # A minute may turn over, which allows six more; the burst is of ten minutes.
    assert set(counts) == {200, 429} and counts[200] in (10, 16), counts
    assert (await send(running.anonymous, "/open", {"text": "x"})).status == 200


async def test_limits_of_all_processes(start_platform: Start, platform_home: Path, redis_url: str) -> None:
    env = {
        "REDIS_URL": redis_url,
        "PLATFORM_WEBHOOK_PROVEN_PER_MINUTE": "4",
        "PLATFORM_WEBHOOK_PROVEN_BURST": "0",
    }
    name = f"notes-{platform_home.parent.name[-20:]}".lower().replace("_", "-")
    drop(platform_home / "manifests", "a.yaml", manifest(name, secret="notes.key"))
    both = [
        await start_platform("manifest_webhooks", HashEmbeddings(), env={**LIMITED, **env}) for _ in range(2)
    ]
    both[0].platform.secrets.set("notes.key", KEY.decode())
    statuses = [(await deliver(both[number % 2], number)).status for number in range(12)]
    of_windows(statuses, 200, 4)


async def test_token(start_platform: Start, platform_home: Path) -> None:
    """A request with a token counts against the general limit like any other."""
    running = await notes(start_platform, platform_home, {"RATE_LIMIT_PER_MINUTE": "20"})
    headers = {"Authorization": "Bearer nope"}
    statuses = [(await send(running.anonymous, "/notes", BODY, headers)).status for _ in range(44)]
    assert set(statuses) == {401, 429}


@pytest.mark.parametrize("length", [2 * 1024 * 1024, 10 * 1024])
async def test_hopeless_before_the_body(start_platform: Start, platform_home: Path, length: int) -> None:
    """What can't be a proof is refused by its headers; nobody waits for a body that never comes."""
    running = await notes(start_platform, platform_home)
    port = int(running.url.rpartition(":")[2])
    head = f"POST /webhook/notes HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n"
    async with asyncio.timeout(5):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head.encode())
        assert b"401" in await reader.readline()
        writer.close()
