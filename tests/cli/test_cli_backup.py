"""`platformctl backup` and `platformctl upgrade --check`, in a home with an account and a document."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

from kernel.testing import platforms
from tests.cli.conftest import Cli

NAMES = ("embeddings", "models", "rag", "platform_ops")
TEXT = "The lighthouse keeper of Norderney counts the passing ships every single evening. He writes it down."


async def fill(home: Path) -> None:
    """An account whose knowledge base has one document."""
    async with platforms(home) as start:
        running = await start(*NAMES)
        ann = await running.user("ann")
        base = (await ann.post("/v1/rag/knowledge-bases", json={"name": "Ships"})).json()["id"]
        sent = await ann.upload(f"/v1/rag/knowledge-bases/{base}/upload", "ships.txt", TEXT.encode())
        assert sent.status == 202, sent.body
        await running.run_jobs()


def usernames(home: Path) -> set[str]:
    """Who has an account."""
    with closing(sqlite3.connect(home / "platform.db")) as connection:
        return {name for (name,) in connection.execute("SELECT username FROM kernel_account")}


async def test_create_verify_drill_restore(cli: Cli, platform_home: Path) -> None:
    """A backup is made, every byte of it read, a restore of it rehearsed and then carried out."""

    async def ctl(*arguments: str) -> tuple[int, str]:
        result = await asyncio.to_thread(cli, *arguments)
        return result.exit_code, result.output

    pending, said = await ctl("upgrade", "--check")
    assert pending == 1 and "kernel" in said
    assert (await ctl("backup", "create"))[0] != 0
    assert (await ctl("db", "upgrade"))[0] == 0
    code, said = await ctl("upgrade", "--check")
    assert (code, "up to date" in said) == (0, True), said
    await fill(platform_home)
    code, said = await ctl("backup", "create")
    assert code == 0, said
    code, listed = await ctl("backup", "list", "--json")
    (archive,) = json.loads(listed)
    assert archive["name"] in said and archive["size_bytes"] > 1000
    code, said = await ctl("backup", "verify")
    assert (code, "every byte is there" in said) == (0, True), said
    code, said = await ctl("backup", "drill")
    assert code == 0, said
    assert "the same, row by row" in said
    assert "1 uploaded files are the same" in said
    assert "1 recorded questions have the same answers" in said
    assert (await ctl("backup", "verify", "platform-20200101-000000.tar.gz"))[0] == 3
    assert (await ctl("users", "create", "late", "--generate"))[0] == 0
    code, said = await ctl("backup", "restore", archive["name"], "--yes")
    assert (code, f"restored {archive['name']}" in said) == (0, True), said
    assert usernames(platform_home) == {"ann"}
    for piece in (platform_home / "backups" / "objects").rglob("*"):
        if piece.is_file():
            piece.write_bytes(piece.read_bytes()[:-1])
    code, said = await ctl("backup", "verify", archive["name"])
    assert (code, "Traceback" in said) == (1, False), said
