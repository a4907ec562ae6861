"""Tables of the platform and its plugins: whose they are, and that migrations make what models say."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from sqlalchemy import DefaultClause, Table, inspect, text
from sqlalchemy.orm import Session

from cli import revisions
from kernel.db import migrate
from kernel.db.startup import SCHEMA
from kernel.platform import Platform
from kernel.plugins.loading import installed
from kernel.testing import platforms, postgres_database

NAMES = [candidate.name for candidate in installed()]


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["sqlite", "postgresql"])
async def platform(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Platform]:
    """A platform with every built-in plugin, on each database; no test changes it."""
    async with platforms(tmp_path_factory.mktemp("tables")) as start:
        if request.param == "sqlite":
            yield (await start(*NAMES)).platform
            return
        with postgres_database() as url:
            yield (await start(*NAMES, env={"DATABASE_URL": url})).platform


def tables_of(platform: Platform) -> list[Table]:
    """The models' tables of every owner."""
    owners = platform.resource(SCHEMA).owners()
    return [table for owner in owners for table in owner.tables.base.metadata.tables.values()]


async def test_every_plugin_starts(platform: Platform) -> None:
    assert {record.name: record.reason for record in platform.plugins if record.status != "loaded"} == {}


async def test_models_and_migrations_agree(platform: Platform) -> None:
    """Upgrading from nothing makes exactly what the models say, for every owner."""
    found = {
        owner.name: await revisions.drift(platform.database, owner)
        for owner in platform.resource(SCHEMA).owners()
    }
    assert {name: list(lines) for name, lines in found.items() if lines} == {}


async def test_defaults_of_columns(platform: Platform) -> None:
    """The database has the defaults that models give it, which `drift` doesn't compare."""
    tables = tables_of(platform)

    def differing(session: Session) -> dict[str, tuple[str, str | None]]:
        connection = session.connection()
        found: dict[str, tuple[str, str | None]] = {}
        for table in tables:
            there = {one["name"]: one["default"] for one in inspect(connection).get_columns(table.name)}
            for column in table.columns:
                if not isinstance(column.server_default, DefaultClause):
                    continue
                given = column.server_default.arg
                wanted = given if isinstance(given, str) else str(given.compile(connection))
                default = there[column.name]
                if default is None or default.partition("::")[0].strip("()'") != wanted:
                    found[str(column)] = (wanted, default)
        return found

    assert await platform.database.read(differing) == {}


async def test_numbers_are_given_once(platform: Platform) -> None:
    """On SQLite, a rebuilt table keeps AUTOINCREMENT, which the comparison of models does not look at."""
    tables = tables_of(platform)
    wanted = {table.name for table in tables if table.dialect_options["sqlite"]["autoincrement"]}
    assert wanted
    if platform.database.is_sqlite:
        rows = await platform.database.read(
            lambda session: session.execute(text("SELECT name, sql FROM sqlite_master")).all()
        )
        assert wanted <= {name for name, sql in rows if "AUTOINCREMENT" in (sql or "")}


async def test_every_table_has_an_owner(platform: Platform) -> None:
    tables = await platform.database.read(
        lambda session: set(inspect(session.connection()).get_table_names())
    )
    owners = [owner.name for owner in platform.resource(SCHEMA).owners()]
    strangers = {t for t in tables if not t.startswith(tuple(f"{name}_" for name in owners))}
    assert strangers <= {"sqlite_sequence"}


async def test_owners_refer_to_themselves_and_the_kernel(platform: Platform) -> None:
    """A foreign key never points at another plugin's table: that plugin could be uninstalled."""
    for owner in platform.resource(SCHEMA).owners():
        for table in owner.tables.base.metadata.tables.values():
            for key in table.foreign_keys:
                target = key.column.table.name
                assert target.startswith((f"{owner.name}_", "kernel_")), f"{table.name} → {target}"


async def test_revisions_are_numbered_without_a_gap(platform: Platform) -> None:
    """Revisions are 0100 (of release 0.1.0), 0101 …, each upon the one before it."""
    from alembic.script import ScriptDirectory

    for owner in platform.resource(SCHEMA).owners():
        script = ScriptDirectory.from_config(migrate.alembic_config(owner))
        found = [(revision.revision, revision.down_revision) for revision in script.walk_revisions()][::-1]
        wanted = [f"{number:04d}" for number in range(100, 100 + len(found))]
        assert found == list(zip(wanted, [None, *wanted], strict=False)), owner.name
