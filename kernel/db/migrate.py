"""Migrations: an Alembic history and version table per owner, kernel first, under one lock.

A process that finds another one migrating waits for it: a file lock next to a SQLite database, an
advisory lock on PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import inspect, text
from sqlalchemy.engine import Connection

from kernel.db.base import Tables
from kernel.db.engine import Database
from kernel.db.locks import installation_lock

if TYPE_CHECKING:
    from alembic.config import Config

SCRIPTS = Path(__file__).resolve().parent / "migrations"


@dataclass(frozen=True)
class Owner:
    """Who owns tables: the kernel or a plugin."""

    name: str
    tables: Tables

    @property
    def version_table(self) -> str:
        """Where Alembic keeps this owner's revision."""
        return _version_table(self.name)


@dataclass(frozen=True)
class Pending:
    """Revisions of an owner that the database lacks, oldest first; `is_new` if it has none at all."""

    owner: str
    revisions: tuple[str, ...]
    is_new: bool = False


class TableTaken(Exception):
    """Two owners claim the same table."""


class UnknownRevision(Exception):
    """The database has a revision that this version of the owner's code lacks; `remedy` says what to do."""

    def __init__(self, revision: str, own_revisions: Sequence[str] = ()) -> None:
        first = min(own_revisions, default="")
        if revision < first:
            text = f"was made before the first release: it has the migration {revision}"
            text += f", and the migrations of this version begin with {first}"
            self.remedy = (
                "stay with the version that made it, or start with an empty database (another PLATFORM_HOME"
                " or DATABASE_URL)"
            )
        else:
            text = f"is newer than this version: it has the migration {revision}"
            self.remedy = (
                "install the version that made it, or restore a backup of this version into an empty database"
            )
        super().__init__(f"the database {text}")


def kernel_owner() -> Owner:
    """The kernel's own tables."""
    from kernel.auth import models as _auth  # noqa: F401 - registers its tables
    from kernel.db.tables import Base

    return Owner("kernel", Tables(Base, SCRIPTS / "versions"))


def migration_lock(database: Database) -> AbstractAsyncContextManager[None]:
    """Hold the lock under which schemas change."""
    return installation_lock(database, "migrating")


async def pending(database: Database, owner: Owner) -> Pending:
    """The owner's revisions that the database lacks. Raises UnknownRevision, or what its scripts raise."""
    return await database.read(lambda session: _pending(session.connection(), owner))


async def revision_of(database: Database, owner: str) -> str | None:
    """The revision of an owner's tables in the database, installed or not; None without tables."""
    return await database.read(lambda session: _current(session.connection(), owner))


def has_revisions(owner: Owner) -> bool:
    """Whether the owner brings any migration."""
    return bool(_revision_files(owner.tables.migrations))


async def upgrade(database: Database, owner: Owner, owner_by_table: dict[str, str]) -> Pending:
    """Bring `owner` up to date in one transaction; returns what was applied.

    `owner_by_table` is extended. Raises TableTaken before anything is changed.
    """
    claim(owner, owner_by_table)
    state = await pending(database, owner)
    if state.revisions:
        async with database.schema_change() as connection:
            await connection.run_sync(upgrade_within, owner)
    return state


def claim(owner: Owner, owner_by_table: dict[str, str]) -> None:
    """Record the owner's tables in `owner_by_table`. Raises TableTaken if another owner has one of them."""
    names = set(owner.tables.base.metadata.tables)
    for name in sorted(names):
        holder = owner_by_table.get(name)
        if holder is not None and holder != owner.name:
            raise TableTaken(f"table '{name}' belongs to '{holder}'; rename it to '{owner.name}_…'")
        if not name.startswith(f"{owner.name}_"):
            raise TableTaken(f"table '{name}' must be called '{owner.name}_…'")
    owner_by_table.update(dict.fromkeys(names, owner.name))


def alembic_config(owner: Owner, connection: Connection | None = None) -> Config:
    """An Alembic configuration for one owner; the open connection is handed over in its attributes."""
    from alembic.config import Config

    config = Config()
    # Alembic's options treat a per cent sign as interpolation.
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.set_main_option("version_locations", str(owner.tables.migrations).replace("%", "%%"))
    config.set_main_option("path_separator", "newline")
    config.attributes.update(_attributes(owner, connection), connection=connection)
    return config


def _attributes(owner: Owner, connection: Connection | None) -> dict[str, Any]:
    return {
        "target_metadata": owner.tables.base.metadata,
        "version_table": owner.version_table,
        "include_name": None if connection is None else include_name(owner, connection),
    }


def _pending(connection: Connection, owner: Owner) -> Pending:
    revisions = _revision_files(owner.tables.migrations)
    current = _current(connection, owner.name)
    if current is not None and revisions and current == revisions[-1]:
        return Pending(owner.name, ())
    return Pending(owner.name, _missing(owner, current), is_new=current is None)


def known_revisions(owner: Owner) -> frozenset[str]:
    """The revisions that `owner` brings migrations to."""
    return frozenset(_revision_files(owner.tables.migrations))


def _revision_files(folder: Path) -> list[str]:
    """Revision ids in file name order; cheap enough for every start, unlike loading the scripts."""
    return [path.stem.partition("_")[0] for path in sorted(folder.glob("[0-9]*.py"))]


def _version_table(owner: str) -> str:
    return f"{owner}_alembic_version"


def _current(connection: Connection, owner: str) -> str | None:
    table = _version_table(owner)
    if not inspect(connection).has_table(table):
        return None
    return connection.execute(text(f"SELECT version_num FROM {table}")).scalar()


def _missing(owner: Owner, current: str | None) -> tuple[str, ...]:
    from alembic.script import ScriptDirectory

    script = ScriptDirectory.from_config(alembic_config(owner))
    own_revisions = [revision.revision for revision in script.walk_revisions()]
    if current is not None and current not in own_revisions:
        raise UnknownRevision(current, own_revisions)
    revisions = script.iterate_revisions("heads", current or "base")
    return tuple(revision.revision for revision in reversed(list(revisions)))


def upgrade_within(connection: Connection, owner: Owner, revision: str = "heads") -> None:
    """Bring `owner` to a revision in the connection's transaction."""
    from alembic import command

    command.upgrade(alembic_config(owner, connection), revision)


def include_name(owner: Owner, connection: Connection) -> Callable[[str | None, str, Any], bool]:
    """A filter for Alembic: whether a table belongs to the owner.

    A table belongs to the owner with the longest matching name, among those with a version table:
    `shelf_extra_label` is a table of `shelf_extra`, not of `shelf`.
    """
    tables = set(inspect(connection).get_table_names())
    suffix = "_alembic_version"
    owners = {owner.name, *(name.removesuffix(suffix) for name in tables if name.endswith(suffix))}

    def ours(name: str | None, kind: str, _parents: Any) -> bool:
        if kind != "table" or name is None:
            return kind != "table"
        fitting = [other for other in owners if name.startswith(f"{other}_")]
        mine = max(fitting, key=len, default=None) == owner.name
        return mine and not name.endswith(suffix) and not _is_derived(owner, name)

    return ours


def _is_derived(owner: Owner, name: str) -> bool:
    return any(name == one or name.startswith(f"{one}_") for one in owner.tables.derived)
