"""Of several files with one name or one webhook path, every process has the same one live."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Generator
from pathlib import Path, PosixPath

import pytest
from sqlalchemy import text

from builtin_plugins.manifest_webhooks.claims import TOPIC
from builtin_plugins.manifest_webhooks.live_folder import FOLDER
from kernel.testing import Running, Start, platforms
from tests.builtin_plugins.manifest_webhooks.webhook_support import drop, manifest, names, send, until
from tests.fakes.hash_embeddings import HashEmbeddings

PLUGINS = ("owner_secrets", "plugin_registry", "manifest_webhooks")


@pytest.fixture
def folder(platform_home: Path) -> Path:
    return platform_home / "manifests"


async def taker(running: Running, path: str = "/notes") -> str | None:
    answer = await send(running.anonymous, path, {"text": "x"})
    return str(answer.json()["plugin"]) if answer.status == 200 else None


async def reason(running: Running, file: str) -> str:
    """Why a file is refused; empty when it is not."""
    answer = await running.anonymous.get(f"/v1/plugins/{file}")
    return str(answer.json()["reason"]) if answer.status == 200 else ""


async def claims(running: Running) -> list[tuple[str, str, str]]:
    query = text("SELECT kind, value, file FROM manifest_webhooks_claim ORDER BY kind")
    return [tuple(row) for row in await running.platform.database.read(lambda db: db.execute(query).all())]


async def until_refused(running: Running, file: str, why: str) -> None:
    async def refused() -> bool:
        return why in await reason(running, file)

    await until(refused)


async def until_gone(running: Running, plugin: str) -> None:
    async def gone() -> bool:
        return (await running.anonymous.get(f"/v1/plugins/{plugin}")).status == 404

    await until(gone)


async def until_taken_by(running: Running, plugin: str, path: str = "/notes") -> None:
    async def taken() -> bool:
        return await taker(running, path) == plugin

    await until(taken)


async def test_a_later_process_agrees(start_platform: Start, folder: Path, database_url: str | None) -> None:
    env = {"DATABASE_URL": database_url}
    drop(folder, "b.yaml", manifest("second", "/notes"))
    drop(folder, "d.yaml", manifest("named", "/d"))
    first = await start_platform(*PLUGINS, HashEmbeddings(), env=env)
    drop(folder, "a.yaml", manifest("first", "/notes"))
    drop(folder, "c.yaml", manifest("named", "/c"))
    await until_refused(first, "a.yaml", "/notes is also declared in b.yaml, which is live")
    await until_refused(first, "c.yaml", "named is also declared in d.yaml, which is live")
    later = await start_platform(*PLUGINS, HashEmbeddings(), env=env)
    assert [await taker(one) for one in (first, later)] == ["second", "second"]
    assert [await taker(later, path) for path in ("/c", "/d")] == [None, "named"]
    (folder / "b.yaml").unlink()
    for one in (first, later):
        await until_taken_by(one, "first")


async def test_a_restart_changes_nothing(platform_home: Path, folder: Path) -> None:
    """After all processes have ended, and even if they found the folder empty, the same file is live."""
    drop(folder, "b.yaml", manifest("second", "/notes"))
    async with platforms(platform_home) as start:
        running = await start(*PLUGINS, HashEmbeddings())
        drop(folder, "a.yaml", manifest("first", "/notes"))
        await until_refused(running, "a.yaml", "b.yaml")
    away = await asyncio.to_thread(folder.rename, folder.parent / "not-mounted")
    async with platforms(platform_home) as start:
        running = await start(*PLUGINS, HashEmbeddings())
        assert await taker(running) is None
        away.rename(folder)
        await until_taken_by(running, "second")
    async with platforms(platform_home) as start:
        running = await start(*PLUGINS, HashEmbeddings())
        assert await taker(running) == "second"
        assert "b.yaml" in await reason(running, "a.yaml")


async def test_a_broken_edit_gives_nothing_away(start_platform: Start, folder: Path) -> None:
    """A live file that an edit breaks keeps its name and its path, also in a process that starts then."""
    drop(folder, "m.yaml", manifest("notes", "/notes"))
    running = await start_platform(*PLUGINS, HashEmbeddings())
    drop(folder, "a.yaml", manifest("other", "/notes"))
    drop(folder, "b.yaml", manifest("notes", "/b"))
    await until_refused(running, "b.yaml", "m.yaml")
    drop(folder, "m.yaml", "apiVersion: [")
    for one in (running, await start_platform(*PLUGINS, HashEmbeddings())):
        await until_refused(one, "m.yaml", "not YAML")
        for other, claimed in (("a.yaml", "path /notes"), ("b.yaml", "name notes")):
            told = await reason(one, other)
            assert claimed in told and "m.yaml" in told
        assert [await taker(one, path) for path in ("/notes", "/b")] == [None, None]
        health = (await one.anonymous.get("/health")).json()
        assert "belongs to m.yaml" in health["plugins"]["a.yaml"]["reason"]
    admin = await running.user(role="admin")
    refused = await admin.post("/v1/plugins/install", json=manifest("notes", "/free"))
    assert refused.status == 409 and "m.yaml" in refused.detail
    assert names(folder) == ["a.yaml", "b.yaml", "m.yaml"]
    drop(folder, "m.yaml", manifest("notes", "/notes"))
    await until_taken_by(running, "notes")


async def test_a_file_gives_up_what_it_no_longer_declares(start_platform: Start, folder: Path) -> None:
    drop(folder, "m.yaml", manifest("notes", "/notes"))
    running = [await start_platform(*PLUGINS, HashEmbeddings()) for _ in range(2)]
    drop(folder, "a.yaml", manifest("waiting", "/notes"))
    drop(folder, "m.yaml", manifest("notes", "/moved"))
    for one in running:
        await until_taken_by(one, "waiting")
        await until_taken_by(one, "notes", "/moved")


async def test_a_renamed_file_keeps_its_place(start_platform: Start, folder: Path) -> None:
    path = drop(folder, "m.yaml", manifest("notes", "/notes"))
    running = await start_platform(*PLUGINS, HashEmbeddings())
    drop(folder, "a.yaml", manifest("waiting", "/notes"))
    await until_refused(running, "a.yaml", "m.yaml")
    path.rename(folder / "z.yaml")
    await until_refused(running, "a.yaml", "z.yaml, which is live")
    assert await taker(running) == "notes"


async def test_looking_while_an_editor_saves(start_platform: Start, folder: Path) -> None:
    """An administrator's request that comes while an editor has a file away takes nothing from it."""
    drop(folder, "m.yaml", manifest("notes", "/notes"))
    running = await start_platform(*PLUGINS, HashEmbeddings())
    admin = await running.user(role="admin")
    drop(folder, "a.yaml", manifest("waiting", "/notes"))
    await until_refused(running, "a.yaml", "m.yaml")
    looks: list[int] = []

    class Saving(PosixPath):
        """The folder, at which somebody looks just after the editor's first step."""

        def iterdir(self) -> Generator[Saving, None, None]:
            looks.append(len(looks))
            return (path for path in super().iterdir() if looks[1:] or path.name != "m.yaml")

    running.platform.resource(FOLDER).directory = Saving(folder)
    assert (await admin.post("/v1/plugins/install", json=manifest("other", "/other"))).status == 200
    assert looks
    assert await taker(running) == "notes" and "m.yaml" in await reason(running, "a.yaml")


async def test_folders_that_are_not_in_step(
    start_platform: Start, tmp_path: Path, database_url: str | None
) -> None:
    """Two machines whose folders fill up in a different order agree once both have the same files."""
    folders = [tmp_path / "one", tmp_path / "two"]
    first, second = manifest("first", "/notes"), manifest("second", "/notes")
    running = []
    for at in folders:
        at.mkdir()
        env = {"DATABASE_URL": database_url, "PLATFORM_MANIFESTS_DIR": str(at)}
        running.append(await start_platform(*PLUGINS, HashEmbeddings(), env=env))
    drop(folders[0], "a.yaml", first)
    await until_taken_by(running[0], "first")
    drop(folders[0], "b.yaml", second)
    await until_refused(running[0], "b.yaml", "a.yaml")
    drop(folders[1], "b.yaml", second)
    for one in running:
        await until_taken_by(one, "second")
    assert "b.yaml" in await reason(running[0], "a.yaml")
    drop(folders[1], "a.yaml", first)
    await until_refused(running[1], "a.yaml", "b.yaml")
    assert [await taker(one) for one in running] == ["second", "second"]


async def test_folders_that_stay_different(start_platform: Start, tmp_path: Path) -> None:
    """Each of two machines with only one of two files serves what it has."""
    running = []
    for name in ("one", "two"):
        drop(tmp_path / name, f"{name}.yaml", manifest(name, "/notes"))
        env = {"PLATFORM_MANIFESTS_DIR": str(tmp_path / name)}
        running.append(await start_platform(*PLUGINS, HashEmbeddings(), env=env))
    drop(tmp_path / "one", "more.yaml", manifest("more", "/more"))
    await until_taken_by(running[0], "more", "/more")
    assert [await taker(one) for one in running] == ["one", "two"]


async def test_a_database_that_fails(
    start_platform: Start, folder: Path, database_url: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """While claims can't be read, what is live stays live; the change counts once they can."""

    async def rename(table: str, to: str) -> None:
        async with running.platform.database.schema_change() as connection:
            await connection.execute(text(f"ALTER TABLE {table} RENAME TO {to}"))

    drop(folder, "a.yaml", manifest())
    running = await start_platform(*PLUGINS, HashEmbeddings(), env={"DATABASE_URL": database_url})
    await rename("manifest_webhooks_claim", "manifest_webhooks_away")
    drop(folder, "a.yaml", manifest(path="/moved"))

    async def told() -> bool:
        return "a change of the manifests waits" in caplog.text

    async def deaf() -> bool:
        running.platform.notices.deliver(TOPIC, "")
        return caplog.text.count("the claims of manifests can't be read") > 0

    await until(told)
    await until(deaf)
    assert await taker(running) == "notes"
    await rename("manifest_webhooks_away", "manifest_webhooks_claim")
    await until_taken_by(running, "notes", "/moved")
    assert "Traceback" not in caplog.text
    assert sum("claims of manifests" in message for message in caplog.messages) == 1


async def test_removed_through_the_api(start_platform: Start, folder: Path) -> None:
    """A removed plugin's claims go with it, also after its file; a file that is broken then keeps its own."""
    held = [("name", "notes", "a.yaml"), ("path", "/notes", "a.yaml")]
    path = drop(folder, "a.yaml", manifest())
    running = await start_platform(*PLUGINS, HashEmbeddings())
    admin = await running.user(role="admin")
    assert await claims(running) == held
    assert (await admin.delete("/v1/plugins/notes")).status == 200
    assert await claims(running) == []
    drop(folder, "a.yaml", manifest())
    await until_taken_by(running, "notes")
    path.unlink()
    await until_gone(running, "notes")
    assert (await admin.delete("/v1/plugins/notes")).status == 200
    assert await claims(running) == []
    assert (await admin.delete("/v1/plugins/notes")).status == 404
    drop(folder, "a.yaml", manifest())
    await until_taken_by(running, "notes")
    drop(folder, "a.yaml", "x")
    await until_gone(running, "notes")
    assert (await admin.delete("/v1/plugins/notes")).status == 200
    assert await claims(running) == held


async def test_a_file_name_that_is_no_text(start_platform: Start, folder: Path) -> None:
    """A file whose name is not UTF-8 works like any other, and can be named when it is refused."""
    drop(folder, os.fsdecode(b"\xff.yaml"), manifest())
    drop(folder, os.fsdecode(b"\xfe.yaml"), manifest("other", "/notes"))
    running = await start_platform(*PLUGINS, HashEmbeddings())
    assert await taker(running) == "other"
    found = (await running.anonymous.get("/v1/plugins")).json()["plugins"]
    (refused,) = (one for one in found if one["status"] == "error")
    assert refused["name"] == "\\xff.yaml" and "\\xfe.yaml" in refused["reason"]


async def test_removing_a_file_name_that_is_no_text(
    start_platform: Start, folder: Path, database_url: str | None
) -> None:
    """Also one that grows fourfold as its bytes are written out."""
    drop(folder, os.fsdecode(b"\xff" * 100 + b".yaml"), manifest())
    running = await start_platform(*PLUGINS, HashEmbeddings(), env={"DATABASE_URL": database_url})
    assert await taker(running) == "notes"
    admin = await running.user(role="admin")
    assert (await admin.delete("/v1/plugins/notes")).status == 200
    assert names(folder) == [] and await claims(running) == []


async def test_an_update_that_is_refused(start_platform: Start, folder: Path) -> None:
    """An update to a path that a broken file holds is refused, and what was installed stays live."""
    drop(folder, "m.yaml", manifest("other", "/notes"))
    running = await start_platform(*PLUGINS, HashEmbeddings())
    admin = await running.user(role="admin")
    assert (await admin.post("/v1/plugins/install", json=manifest("mine", "/mine"))).status == 200
    drop(folder, "m.yaml", "apiVersion: [")
    await until_refused(running, "m.yaml", "not YAML")
    refused = await admin.post("/v1/plugins/reload-webhook", json=manifest("mine", "/notes"))
    assert refused.status == 409 and "m.yaml" in refused.detail
    assert names(folder) == ["m.yaml", "mine.yaml"]
    assert await taker(running, "/mine") == "mine"


async def test_an_update_that_comes_second(start_platform: Start, folder: Path) -> None:
    """Where another file gets the path while an update is written, what was installed comes back."""
    drop(folder, "a.yaml", manifest("other", "/other"))
    running = await start_platform(*PLUGINS, HashEmbeddings())
    admin = await running.user(role="admin")
    assert (await admin.post("/v1/plugins/install", json=manifest("mine", "/mine"))).status == 200
    looks: list[int] = []

    class Edited(PosixPath):
        """The folder, in which somebody edits the other file just before the second look."""

        def iterdir(self) -> Generator[Edited, None, None]:
            looks.append(len(looks))
            if len(looks) == 2:
                drop(folder, "a.yaml", manifest("other", "/notes"))
            return super().iterdir()

    running.platform.resource(FOLDER).directory = Edited(folder)
    refused = await admin.post("/v1/plugins/reload-webhook", json=manifest("mine", "/notes"))
    assert refused.status == 409 and "a.yaml" in refused.detail
    assert [await taker(running, path) for path in ("/mine", "/notes")] == ["mine", "other"]
