"""A damaged page of SQLite's file: told as what it is, to clients, in the health and by `doctor`."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from builtin_plugins.platform_ops.damage import CHECK_DATABASE
from cli.stored_checks import check_database_file
from kernel.jobs.declarations import NoPayload
from kernel.sdk import JobFailed
from kernel.testing import platforms
from tests.builtin_plugins.rag.rag_support import ingest, make_base, make_pipeline, upload
from tests.fakes.hash_embeddings import HashEmbeddings

PLUGINS = ("rag", HashEmbeddings())


def damage(home: Path, table: str) -> None:
    """Overwrite the first page of a table, as a bad sector would."""
    with closing(sqlite3.connect(home / "platform.db")) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (size,) = database.execute("PRAGMA page_size").fetchone()
        query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        (page,) = database.execute(query, (table,)).fetchone()
    with (home / "platform.db").open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)


async def test_it_is_told_as_damage(platform_home: Path) -> None:
    """503 with the remedy instead of 500; afterwards `/health` is unhealthy, and uploads are refused."""
    async with platforms(platform_home) as start:
        running = await start(*PLUGINS)
        ann = await running.user()
        base = await make_base(ann)
        await ingest(running, ann, base, "a.txt", "The station on Senja was opened in 1921.")
        await make_pipeline(ann, base)
    damage(platform_home, "rag_pipeline")
    async with platforms(platform_home) as start:
        running = await start(*PLUGINS)
        ann = await running.sign_in(ann.user["username"], ann.password)
        assert (await running.anonymous.get("/health")).json()["checks"]["database"] == "healthy"
        answer = await ann.get("/v1/rag/pipeline")
        assert (answer.status, answer.json()["code"]) == (503, "unavailable")
        assert "damaged" in answer.detail and "backup" in answer.detail
        health = await running.anonymous.get("/health")
        assert health.status == 503 and "damaged" in health.json()["checks"]["database"]
        refused = await upload(ann, base, "b.txt", "Another text.")
        assert refused.status == 503 and "damaged" in refused.detail
        finding = await check_database_file(running.platform)
        assert finding.status == "failed" and "backup restore" in finding.remedy


async def test_it_is_looked_for_on_a_schedule(platform_home: Path) -> None:
    """A nightly job finds the damage before anybody runs into it, and `/health` is unhealthy."""
    async with platforms(platform_home) as start:
        await start(*PLUGINS)
    damage(platform_home, "rag_pipeline")
    async with platforms(platform_home) as start:
        running = await start(*PLUGINS)
        with pytest.raises(JobFailed):
            await CHECK_DATABASE.handler(running.platform, NoPayload())
        health = await running.anonymous.get("/health")
        assert "damaged" in health.json()["checks"]["database"]
