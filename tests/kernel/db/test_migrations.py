"""Migrations: from nothing to the models on both databases, each owner by itself, under one lock."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Mapped, mapped_column

from cli import revisions
from kernel.db import migrate
from kernel.db.base import Tables
from kernel.db.startup import SCHEMA
from kernel.errors import StartupError
from kernel.plugins.loading import Plugin
from kernel.sdk import PLUGIN_STATES, plugin_base
from kernel.testing import Running, Start, environment
from tests.fakes.echo import EchoPlugin
from tests.fakes.processes import running_process
from tests.fakes.rows import execute
from tests.fakes.small_disk import small_disk
from tests.fakes.tables import (
    BROKEN,
    SHELF_FIRST,
    SHELF_NOTES,
    plugin_with_tables,
    shelf_base,
    write_migrations,
)


@pytest.fixture
def shelf(tmp_path: Path) -> Plugin:
    """A plugin with two tables and one migration."""
    return plugin_with_tables("shelf", shelf_base(), write_migrations(tmp_path / "shelf-1", [SHELF_FIRST]))


@pytest.fixture
def shelf_with_notes(tmp_path: Path) -> Plugin:
    """The next version of it, with a second migration."""
    folder = write_migrations(tmp_path / "shelf-2", [SHELF_FIRST, SHELF_NOTES])
    return plugin_with_tables("shelf", shelf_base(notes=True), folder)


@pytest.fixture
def broken_shelf(tmp_path: Path) -> Plugin:
    """A next version whose second migration fails half-way."""
    folder = write_migrations(tmp_path / "shelf-3", [SHELF_FIRST, BROKEN])
    return plugin_with_tables("shelf", shelf_base(notes=True), folder)


async def rows(running: Running, query: str) -> list[tuple[object, ...]]:
    return await running.platform.database.read(
        lambda session: [tuple(row) for row in session.execute(text(query)).all()]
    )


async def write(running: Running, *statements: str) -> None:
    await execute(running.platform.database, *map(text, statements))


async def drift(running: Running) -> list[str]:
    found: list[str] = []
    for owner in running.platform.resource(SCHEMA).owners():
        found += await revisions.drift(running.platform.database, owner)
    return found


class TestFromNothing:
    async def test_models_and_tables_agree(
        self, start_platform: Start, empty_database_url: str | None, shelf_with_notes: Plugin
    ) -> None:
        """What the migrations make from an empty database is what the models say."""
        env = {"DATABASE_URL": empty_database_url}
        running = await start_platform(shelf_with_notes, env=env, migrated=False)
        assert running.platform.resource(PLUGIN_STATES).records["shelf"].status == "loaded"
        assert await drift(running) == []

    async def test_drift_is_noticed(
        self, start_platform: Start, empty_database_url: str | None, tmp_path: Path
    ) -> None:
        """A model that no migration makes true shows up in the comparison."""
        folder = write_migrations(tmp_path / "late", [SHELF_FIRST])
        late = plugin_with_tables("shelf", shelf_base(notes=True), folder)
        running = await start_platform(late, env={"DATABASE_URL": empty_database_url})
        found = " ".join(await drift(running))
        assert "note" in found

    async def test_a_second_start_has_nothing_to_do(self, start_platform: Start, shelf: Plugin) -> None:
        """A database that is up to date is left alone."""
        await start_platform(shelf)
        again = await start_platform(shelf)
        assert again.platform.resource(SCHEMA).pending == []
        assert again.platform.resource(PLUGIN_STATES).records["shelf"].status == "loaded"

    async def test_four_processes_at_once(self, tmp_path: Path, empty_database_url: str | None) -> None:
        """Processes that start together on an empty database wait for each other; one of them migrates."""
        env = {
            **environment(tmp_path / "home"),
            **({"DATABASE_URL": empty_database_url} if empty_database_url else {}),
        }

        async def upgrade(number: int) -> tuple[int, str]:
            log = tmp_path / f"upgrade-{number}.log"
            async with running_process("-m", "tests.fakes.opened_process", env=env, log=log) as process:
                return await process.wait(120), process.output()

        results = await asyncio.gather(*map(upgrade, range(4)))
        assert [code for code, _ in results] == [0, 0, 0, 0], results


class TestOwners:
    async def test_each_has_its_own_history(self, start_platform: Start, shelf: Plugin) -> None:
        running = await start_platform(shelf)
        assert await rows(running, "SELECT version_num FROM shelf_alembic_version") == [("0001",)]
        assert await rows(running, "SELECT version_num FROM kernel_alembic_version")

    async def test_a_failed_migration_refuses_its_plugin(
        self,
        start_platform: Start,
        database_url: str | None,
        shelf: Plugin,
        broken_shelf: Plugin,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """A migration that fails changes nothing and takes out its plugin alone, with the reason."""
        env = {"DATABASE_URL": database_url}
        first = await start_platform(shelf, env=env)
        await write(first, "INSERT INTO shelf_shelf (id, name) VALUES (1, 'novels')")
        running = await start_platform(broken_shelf, EchoPlugin, env=env)
        record = running.platform.resource(PLUGIN_STATES).records["shelf"]
        assert record.status == "failed"
        assert "shelf_nowhere" in (record.reason or "")
        assert len((record.reason or "").splitlines()) == 1  # the statement is in the log
        assert "[SQL: " in caplog.text
        assert await rows(running, "SELECT name FROM shelf_shelf") == [("novels",)]
        assert (await running.anonymous.get("/v1/echo/open")).status == 200
        assert (await running.anonymous.get("/health")).json()["status"] == "degraded"

    async def test_a_full_disk_stops_the_start(
        self, start_platform: Start, shelf: Plugin, shelf_with_notes: Plugin, tmp_path: Path
    ) -> None:
        """A migration that finds no room stops the start; with room, the next start works."""
        with small_disk(tmp_path / "disk", 8) as disk:
            env = {"DATABASE_URL": f"sqlite:///{disk.folder}/platform.db", "PLATFORM_MIN_FREE_DISK_MB": "1"}
            first = await start_platform(shelf, env=env)
            await write(first, "INSERT INTO shelf_shelf (id, name) VALUES (1, 'novels')")
            disk.fill()
            with pytest.raises(StartupError, match="disk"):
                await start_platform(shelf_with_notes, env=env)
            disk.relieve()
            running = await start_platform(shelf_with_notes, env=env)
            assert await rows(running, "SELECT name, note FROM shelf_shelf") == [("novels", "")]

    async def test_a_lost_connection_stops_the_start(
        self, start_platform: Start, postgres_url: str, shelf_with_notes: Plugin, tmp_path: Path
    ) -> None:
        """A database that goes away during a plugin's migration is not the plugin's fault."""
        gone = """
        op.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        """
        cut = plugin_with_tables(
            "shelf", shelf_base(), write_migrations(tmp_path / "cut", [SHELF_FIRST, gone])
        )
        env = {"DATABASE_URL": postgres_url}
        with pytest.raises(StartupError, match="database"):
            await start_platform(cut, env=env)
        running = await start_platform(shelf_with_notes, env=env)
        assert await rows(running, "SELECT name, note FROM shelf_shelf") == []

    async def test_dependants_of_a_failed_migration(
        self, start_platform: Start, broken_shelf: Plugin, tmp_path: Path
    ) -> None:
        """What requires a plugin whose migration failed is refused, and not migrated."""

        class Reader(Plugin):
            name = "reader"
            requires = ("shelf",)

        running = await start_platform(broken_shelf, Reader)
        assert running.platform.resource(PLUGIN_STATES).records["reader"].status == "refused"

    async def test_uninstalled_and_installed_again(
        self, start_platform: Start, database_url: str | None, shelf: Plugin, shelf_with_notes: Plugin
    ) -> None:
        """Without its plugin a table stays as it is; the plugin, back and newer, continues from there."""
        env = {"DATABASE_URL": database_url}
        first = await start_platform(shelf, env=env)
        await write(first, "INSERT INTO shelf_shelf (id, name) VALUES (1, 'novels')")
        without = await start_platform(env=env)
        assert without.platform.resource(SCHEMA).pending == []
        back = await start_platform(shelf_with_notes, env=env)
        assert await rows(back, "SELECT name, note FROM shelf_shelf") == [("novels", "")]
        assert await drift(back) == []

    async def test_an_older_version_than_the_database(
        self, start_platform: Start, database_url: str | None, shelf: Plugin, shelf_with_notes: Plugin
    ) -> None:
        """A plugin that is older than its tables is refused; the platform starts."""
        env = {"DATABASE_URL": database_url}
        await start_platform(shelf_with_notes, env=env)
        running = await start_platform(shelf, EchoPlugin, env=env)
        record = running.platform.resource(PLUGIN_STATES).records["shelf"]
        assert record.status == "failed"
        assert "0002" in (record.reason or "") and "newer" in (record.reason or "")
        assert (await running.anonymous.get("/v1/echo/open")).status == 200

    async def test_a_database_from_before_the_first_release(
        self, start_platform: Start, database_url: str | None
    ) -> None:
        """A state that was never released isn't upgraded."""
        env = {"DATABASE_URL": database_url}
        running = await start_platform(env=env)
        await write(running, "UPDATE kernel_alembic_version SET version_num = '0009'")
        with pytest.raises(StartupError, match="0009") as refusal:
            await start_platform(env=env)
        assert "newer" not in str(refusal.value)
        assert await rows(running, "SELECT version_num FROM kernel_alembic_version") == [("0009",)]

    @pytest.mark.parametrize("fault", ["missing", "not python", "two heads"])
    async def test_unfit_migrations(self, start_platform: Start, tmp_path: Path, fault: str) -> None:
        """Migrations that can't be read refuse their plugin alone."""
        folder = tmp_path / "unfit"
        if fault != "missing":
            write_migrations(folder, [SHELF_FIRST])
        if fault == "not python":
            (folder / "0002_step.py").write_text("revision = ")
        if fault == "two heads":
            (folder / "0002_step.py").write_text(
                (folder / "0001_step.py").read_text().replace('"0001"', '"0002"')
            )
        running = await start_platform(plugin_with_tables("shelf", shelf_base(), folder), EchoPlugin)
        assert running.platform.resource(PLUGIN_STATES).records["shelf"].status == "failed"
        assert (await running.anonymous.get("/v1/echo/open")).status == 200

    async def test_names_that_begin_alike(self, start_platform: Start, shelf: Plugin, tmp_path: Path) -> None:
        """The tables of `shelf_extra` are no business of `shelf`."""
        base = plugin_base("shelf_extra")

        class Label(base):  # type: ignore[valid-type,misc]
            __tablename__ = "shelf_extra_label"

            id: Mapped[int] = mapped_column(primary_key=True)

        body = """
        op.create_table(
            "shelf_extra_label",
            sa.Column("id", sa.Integer(), nullable=False),
            sa.PrimaryKeyConstraint("id", name=op.f("pk_shelf_extra_label")),
        )
        """
        extra = plugin_with_tables("shelf_extra", base, write_migrations(tmp_path / "extra", [body]))
        running = await start_platform(shelf, extra)
        states = {record.name: record.status for record in running.platform.plugins}
        assert states == dict.fromkeys(
            ("accounts", "long_jobs", "shared_counters", "shelf", "shelf_extra"), "loaded"
        )
        assert await drift(running) == []


class TestTaken:
    def test_a_table_of_somebody_else(self) -> None:
        """A table belongs to the first who claims it, and must bear its owner's name."""
        taken: dict[str, str] = {}
        migrate.claim(migrate.Owner("shelf", Tables(shelf_base(), Path())), taken)
        assert taken == {"shelf_shelf": "shelf", "shelf_book": "shelf"}
        with pytest.raises(migrate.TableTaken, match=r"'shelf'.*'thief_…'"):
            migrate.claim(migrate.Owner("thief", Tables(shelf_base(), Path())), taken)
        with pytest.raises(migrate.TableTaken, match="'thief_…'"):
            migrate.claim(migrate.Owner("thief", Tables(shelf_base(), Path())), {})

    def test_a_base_refuses_it_at_once(self) -> None:
        """`plugin_base` refuses a table of another name when the class is made."""
        base = plugin_base("shelf")
        with pytest.raises(TypeError, match="'shelf_…'"):

            class Stray(base):  # type: ignore[valid-type,misc]
                __tablename__ = "stray"

                id: Mapped[int] = mapped_column(primary_key=True)


class TestData:
    async def test_children_survive_a_rebuilt_parent(
        self, start_platform: Start, database_url: str | None, shelf: Plugin, shelf_with_notes: Plugin
    ) -> None:
        """SQLite alters a table by rebuilding it: rows that refer to it must not be deleted meanwhile."""
        env = {"DATABASE_URL": database_url}
        first = await start_platform(shelf, env=env)
        await write(
            first,
            "INSERT INTO shelf_shelf (id, name) VALUES (1, 'novels')",
            "INSERT INTO shelf_book (id, shelf_id) VALUES (7, 1)",
        )
        running = await start_platform(shelf_with_notes, env=env)
        assert running.platform.resource(PLUGIN_STATES).records["shelf"].reason is None
        assert await rows(running, "SELECT id, shelf_id FROM shelf_book") == [(7, 1)]

    async def test_references_still_hold_afterwards(
        self, start_platform: Start, shelf_with_notes: Plugin
    ) -> None:
        """After a migration foreign keys are enforced, as always."""
        running = await start_platform(shelf_with_notes)
        with pytest.raises(Exception, match="FOREIGN KEY"):
            await write(running, "INSERT INTO shelf_book (id, shelf_id) VALUES (7, 99)")

    async def test_a_migration_that_breaks_references(
        self, start_platform: Start, shelf: Plugin, tmp_path: Path
    ) -> None:
        """A migration that leaves rows without what they refer to is undone."""
        first = await start_platform(shelf)
        await write(
            first,
            "INSERT INTO shelf_shelf (id, name) VALUES (1, 'novels')",
            "INSERT INTO shelf_book (id, shelf_id) VALUES (7, 1)",
        )
        careless = 'op.execute("UPDATE shelf_book SET shelf_id = 99")'
        folder = write_migrations(tmp_path / "careless", [SHELF_FIRST, careless])
        running = await start_platform(plugin_with_tables("shelf", shelf_base(), folder))
        assert running.platform.resource(PLUGIN_STATES).records["shelf"].status == "failed"
        assert await rows(running, "SELECT shelf_id FROM shelf_book") == [(1,)]


class TestByCommand:
    async def test_a_start_does_not_migrate_when_told_not_to(self, start_platform: Start) -> None:
        """With PLATFORM_MIGRATE_ON_START=false a start on an old database fails and names the command."""
        with pytest.raises(StartupError, match="platformctl db upgrade"):
            await start_platform(env={"PLATFORM_MIGRATE_ON_START": "false"}, migrated=False)

    async def test_a_plugin_that_is_behind(self, start_platform: Start, shelf: Plugin) -> None:
        """Then a plugin whose tables are behind is refused, and the platform starts without it."""
        await start_platform()
        running = await start_platform(shelf, EchoPlugin, env={"PLATFORM_MIGRATE_ON_START": "false"})
        assert "platformctl db upgrade" in (
            running.platform.resource(PLUGIN_STATES).records["shelf"].reason or ""
        )
        assert (await running.anonymous.get("/v1/echo/open")).status == 200
