"""The last deliveries of a manifest: kept with their outcome, bounded, without payloads, shown by the CLI."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from builtin_plugins.manifest_webhooks.deliveries import MAX_RECORDS, last
from builtin_plugins.manifest_webhooks.storing import EVENT_RETENTION
from kernel.testing import Running, Start
from tests.builtin_plugins.manifest_webhooks.webhook_support import (
    drop,
    github_headers,
    make_older,
    manifest,
    send,
)
from tests.cli.conftest import Cli, bare_cli, cli
from tests.fakes.hash_embeddings import HashEmbeddings

__all__ = ["bare_cli", "cli"]

KEY = b"a secret of the operator's choice"


async def notes(start_platform: Start, home: Path, env: dict[str, str | None] | None = None) -> Running:
    events = [{"X-GitHub-Event": "issues"}]
    drop(home / "manifests", "a.yaml", manifest(secret="notes.key", events=events))
    running = await start_platform("manifest_webhooks", "plugin_registry", HashEmbeddings(), env=env)
    running.platform.secrets.set("notes.key", KEY.decode())
    return running


async def deliver(
    running: Running, delivery: str, payload: Any = None, event: str = "issues", key: bytes = KEY
) -> int:
    body = payload if isinstance(payload, bytes) else json.dumps(payload or {"text": "x"}).encode()
    return (await send(running.anonymous, "/notes", body, github_headers(key, body, delivery, event))).status


async def records_of(running: Running, name: str = "notes", limit: int = 300) -> list[tuple[Any, ...]]:
    rows = await running.platform.database.read(
        lambda session: [
            (row.event_id, row.event, row.proven, row.outcome, row.status, row.reason)
            for row in last(session, name, limit)
        ]
    )
    return rows[::-1]


async def test_outcomes(start_platform: Start, platform_home: Path) -> None:
    """Every delivery to a manifest is there, with what became of it and why."""
    running = await notes(start_platform, platform_home)
    secret = "hunter2 in the payload"
    await deliver(running, "d1", {"text": secret})
    await deliver(running, "d1", {"text": secret})
    await deliver(running, "d2", {"text": secret}, "push")
    await deliver(running, "d3", {"other": secret})
    await deliver(running, "d4", {"text": secret}, key=b"wrong")
    await deliver(running, "d5", b'{"text": "hunter2', "issues")
    assert (await send(running.anonymous, "/notes", {"text": secret})).status == 401
    found = await records_of(running)
    assert [row[:5] for row in found] == [
        ("d1", "issues", True, "stored", 200),
        ("d1", "issues", True, "repeated", 200),
        ("d2", "push", True, "skipped", 200),
        ("d3", "issues", True, "refused", 422),
        ("d4", "issues", False, "refused", 401),
        ("d5", "issues", True, "refused", 400),
        (None, None, False, "refused", 401),
    ]
    reasons = [row[5] or "" for row in found]
    for reason, word in zip(
        reasons, ("", "", "push", ".text", "proof does not match", "not JSON", "neither"), strict=True
    ):
        assert word in reason and "hunter2" not in reason


async def test_disabled_and_failing(start_platform: Start, platform_home: Path) -> None:
    """A delivery that finds its plugin disabled, or no engine, is there as refused."""
    running = await notes(start_platform, platform_home)
    admin = await running.user(role="admin")
    await admin.post("/v1/plugins/notes/disable")
    await deliver(running, "d1")
    await admin.post("/v1/plugins/notes/enable")
    await admin.post("/v1/plugins/hash_embeddings/disable")
    await deliver(running, "d2")
    assert [row[3:5] for row in await records_of(running)] == [("refused", 403), ("refused", 503)]


async def test_bounded(start_platform: Start, platform_home: Path, database_url: str | None) -> None:
    """The last 100 of each kind are kept; strangers push out nothing that proved itself."""
    running = await notes(start_platform, platform_home, {"DATABASE_URL": database_url})
    await asyncio.gather(*(deliver(running, f"d{n}", event="push") for n in range(MAX_RECORDS + 20)))
    await deliver(running, "last", event="push")
    proven = [row for row in await records_of(running) if row[2]]
    assert len(proven) == MAX_RECORDS and proven[-1][0] == "last"
    await asyncio.gather(*(deliver(running, f"w{n}", key=b"wrong") for n in range(MAX_RECORDS + 20)))
    await deliver(running, "w", key=b"wrong")  # those that came together did not see each other
    found = await records_of(running)
    assert [row for row in found if row[2]] == proven
    assert len(found) - len(proven) == MAX_RECORDS


async def test_flood_of_strangers(start_platform: Start, platform_home: Path) -> None:
    """Beyond a stranger's limit one refusal a minute is noted, so that a flood costs no writes."""
    running = await notes(start_platform, platform_home, {"RATE_LIMIT_ENABLED": "true"})
    for number in range(40):
        await deliver(running, f"w{number}", key=b"wrong")
    statuses = [row[4] for row in await records_of(running)]
    assert 429 in statuses and statuses.count(429) <= 2 and statuses.count(401) in (10, 20)


async def test_odd_headers(start_platform: Start, platform_home: Path) -> None:
    """What a stranger writes into headers is cut and made harmless for a terminal."""
    running = await notes(start_platform, platform_home)
    headers = {"X-GitHub-Event": "e" * 500, "X-GitHub-Delivery": "ş\u200fd" * 200}
    assert (await send(running.anonymous, "/notes", {"text": "x"}, headers)).status == 401
    (row,) = await records_of(running)
    assert len(row[0]) == 256 and len(row[1]) == 80 and row[0].startswith("?") and "d" in row[0]


async def test_gone_with_the_plugin(start_platform: Start, platform_home: Path) -> None:
    """Uninstalling forgets the deliveries; those of another plugin stay."""
    running = await notes(start_platform, platform_home)
    admin = await running.user(role="admin")
    assert (await admin.post("/v1/plugins/install", json=manifest("other", "/other"))).status == 200
    await deliver(running, "d1")
    await send(running.anonymous, "/other", {"text": "x"})
    assert (await admin.delete("/v1/plugins/notes")).status == 200
    assert await records_of(running) == [] and len(await records_of(running, "other")) == 1


async def test_old_ones_are_forgotten(start_platform: Start, platform_home: Path) -> None:
    running = await notes(start_platform, platform_home)
    await deliver(running, "d1")
    await make_older(running, EVENT_RETENTION / 2)
    assert len(await records_of(running)) == 1
    await make_older(running, EVENT_RETENTION / 2)
    assert await records_of(running) == []


@pytest.mark.parametrize("as_json", [False, True])
async def test_command(start_platform: Start, platform_home: Path, cli: Cli, as_json: bool) -> None:
    """`platformctl manifests deliveries NAME` shows them, newest first, beside a running platform."""
    running = await notes(start_platform, platform_home)
    await deliver(running, "d1")
    await deliver(running, "d2", event="push")
    options = ("--json",) if as_json else ()
    result = await asyncio.to_thread(cli, "manifests", "deliveries", "notes", "--limit", "1", *options)
    assert result.exit_code == 0, result.output
    if as_json:
        (found,) = json.loads(result.stdout)
        assert (found["delivery_id"], found["outcome"], found["proven"]) == ("d2", "skipped", True)
    else:
        assert "d2" in result.stdout and "skipped" in result.stdout and "d1" not in result.stdout
    await deliver(running, "d3", key=b"wrong")
    result = await asyncio.to_thread(cli, "manifests", "deliveries", "notes", "--outcome", "stored", "--json")
    assert [found["delivery_id"] for found in json.loads(result.stdout)] == ["d1"]
    env = {"PLATFORM_MANIFESTS_DIR": str(platform_home / "manifests")}
    none = await asyncio.to_thread(cli, "manifests", "deliveries", "notes", "--outcome", "repeated", env=env)
    assert none.exit_code == 0, none.output
    assert "no repeated deliveries" in none.stderr
    nothing = await asyncio.to_thread(cli, "manifests", "deliveries", "nobody")
    assert nothing.exit_code == 3 and "'nobody'" in nothing.output
