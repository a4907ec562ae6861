"""A disk that fills up harms no document that was acknowledged, and everybody is told."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernel.testing import Actor, Start, eventually, migrated_home
from tests.builtin_plugins.rag.rag_support import make_base, record, somebody, upload
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.processes import free_port, platformctl, served_platform, without_plugins
from tests.fakes.small_disk import SmallDisk, read_only, small_disk

SETTINGS = {"PLATFORM_MIN_FREE_DISK_MB": "1"}
WAITS = "The server's disk is full; reading continues once there is room."


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """A disk of 14 MB."""
    with small_disk(tmp_path / "disk", 14) as found:
        yield found


def in_trouble(log: str) -> bool:
    """Whether a job has met the full disk: in its parser, or when the state of a job is saved."""
    return "disk is full" in log or "could not save the state" in log


async def three_documents(ann: Actor, base: str) -> list[str]:
    """Acknowledged uploads of pages, whose parsers write files; answers their ids."""
    page = "<!doctype html><p>The words of {}.</p>"
    answers = [await upload(ann, base, f"{name}.html", page.format(name)) for name in "abc"]
    assert [answer.status for answer in answers] == [202, 202, 202]
    return [answer.json()["document_id"] for answer in answers]


async def test_documents_outlive_a_full_disk(
    start_platform: Start, disk: SmallDisk, database_url: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Three uploads, a full disk, room again: the documents are read, and none is called damaged."""
    env = {"DATABASE_URL": database_url, **SETTINGS}
    running = await start_platform("rag", HashEmbeddings, home=disk.folder / "home", env=env)
    ann = await somebody(running)
    base = await make_base(ann)
    documents = await three_documents(ann, base)
    disk.fill()
    working = asyncio.create_task(running.run_jobs())
    await eventually(lambda: in_trouble(caplog.text))
    waiting = [await record(ann, base, document) for document in documents]
    waiting += (await ann.get(f"/v1/rag/knowledge-bases/{base}/documents")).json()["items"]
    assert {(one["status"], one["notice"]) for one in waiting} == {("processing", WAITS)}
    disk.relieve()
    async with asyncio.timeout(60):
        await working
    found = [await record(ann, base, document) for document in documents]
    assert [(one["status"], one["chunk_count"], one["notice"]) for one in found] == [
        ("completed", 1, None)
    ] * 3


async def test_a_full_disk_is_named(start_platform: Start, disk: SmallDisk, database_url: str | None) -> None:
    env = {"DATABASE_URL": database_url, **SETTINGS}
    running = await start_platform("rag", HashEmbeddings, home=disk.folder / "home", env=env)
    ann = await somebody(running)
    base = await make_base(ann)
    disk.fill()
    refused = await upload(ann, base)
    assert (refused.status, refused.json()["code"]) == (507, "storage_full")
    health = await ann.get("/health")
    assert (health.status, health.json()["status"]) == (503, "unhealthy")
    assert health.json()["checks"]["disk"].startswith("unhealthy: ")
    disk.relieve()
    assert (await upload(ann, base)).status == 202
    assert (await ann.get("/health")).json()["checks"]["disk"] == "healthy"


async def test_a_row_that_finds_no_room(
    start_platform: Start, disk: SmallDisk, caplog: pytest.LogCaptureFixture
) -> None:
    """With SQLite on the full disk a write is 507 too, what is stored can be read, and nothing is lost.

    Each refusal is one line in the log, which may be on that disk.
    """
    running = await start_platform("rag", HashEmbeddings, home=disk.folder / "home", env=SETTINGS)
    ann = await somebody(running)
    base = await make_base(ann)
    disk.fill()
    async with asyncio.timeout(60):
        while (answer := await ann.post("/v1/rag/knowledge-bases", json={"name": "x" * 200})).status == 200:
            pass
    assert (answer.status, answer.json()["code"]) == (507, "storage_full")
    told = [line for line in caplog.records if line.name == "platform" and "disk_full" in line.getMessage()]
    assert told and [line for line in told if line.exc_info] == []
    assert (await ann.get(f"/v1/rag/knowledge-bases/{base}")).status == 200
    disk.relieve()
    assert (await ann.post("/v1/rag/knowledge-bases", json={"name": "Later"})).status == 200


async def test_a_start_on_a_full_disk(disk: SmallDisk, postgres_url: str) -> None:
    """With its rows on PostgreSQL, the platform starts and says what is wrong, so files can be deleted."""
    env = {**without_plugins("rag"), "DATABASE_URL": postgres_url, **SETTINGS}
    for said in ("healthy", "unhealthy: the server's disk is full; free some space"):
        async with served_platform(disk.folder, "--no-worker", env=env) as served:
            assert (await served.get("/health"))[1]["checks"]["disk"] == said
        disk.fill()
    assert not list((disk.folder / "run").glob(".*"))


def test_a_start_on_a_read_only_disk(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with read_only(home):
        env = {"PLATFORM_HOME": str(home), "PLATFORM_PORT": str(free_port())}
        ended = platformctl("serve", env=env, seconds=30)
    assert (ended.returncode, ended.stderr.strip()) == (1, f"error: {home / 'run'}: Read-only file system")


async def test_a_read_only_disk_is_named(start_platform: Start, tmp_path: Path) -> None:
    running = await start_platform("rag", HashEmbeddings, home=tmp_path / "home", env=SETTINGS)
    with read_only(tmp_path / "home"):
        health = await running.anonymous.get("/health")
    assert (health.status, health.json()["status"]) == (503, "unhealthy")
    assert health.json()["checks"]["disk"].startswith("unhealthy: ")
    assert (await running.anonymous.get("/health")).json()["checks"]["disk"] == "healthy"


def test_commands_name_a_read_only_disk(tmp_path: Path) -> None:
    env = {"PLATFORM_HOME": str(tmp_path), "PLATFORM_PORT": str(free_port()), **SETTINGS}
    with read_only(tmp_path):
        result = platformctl("doctor", "--json", env=env)
        shown = platformctl("status", env=env)
    found = {item["check"]: item for item in json.loads(result.stdout)}
    assert (result.returncode, found["disk"]["status"]) == (1, "failed")
    assert "dmesg" in found["disk"]["remedy"]
    assert "can't be written" in shown.stdout


@pytest.mark.parametrize("used", [True, False])
def test_doctor_says_so(disk: SmallDisk, used: bool) -> None:
    env = {"PLATFORM_HOME": str(disk.folder / "home"), "PLATFORM_PORT": str(free_port()), **SETTINGS}

    home = Path(env["PLATFORM_HOME"])
    if used:
        migrated_home(home)
        made = platformctl("db", "upgrade", env=env)  # the secrets, for which there is no room later
        assert made.returncode == 0
    else:
        home.mkdir(mode=0o700)
    disk.fill()
    result = platformctl("doctor", "--json", env=env)
    found = {item["check"]: item for item in json.loads(result.stdout)}
    assert (result.returncode, found["disk"]["status"]) == (1, "failed")
    assert "full" in found["disk"]["text"]


async def test_a_hanging_disk_holds_up_nothing_else(
    start_platform: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await start_platform("rag", HashEmbeddings())
    ann = await running.user()
    base = await make_base(ann)
    loop, asked, answers, statvfs = asyncio.get_running_loop(), asyncio.Event(), threading.Event(), os.statvfs

    def hang(path: Any) -> Any:
        loop.call_soon_threadsafe(asked.set)
        assert answers.wait(30)
        return statvfs(path)

    monkeypatch.setattr(os, "statvfs", hang)
    sent = asyncio.create_task(upload(ann, base, "a.txt", "The station on Senja."))
    await asyncio.wait_for(asked.wait(), 10)
    assert (await running.anonymous.get("/livez")).status == 200
    assert (await ann.get("/v1/rag/knowledge-bases")).status == 200
    assert not sent.done()
    answers.set()
    assert (await sent).status == 202
