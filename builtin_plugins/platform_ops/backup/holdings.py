"""What a database holds for each owner, whether or not its plugin is loaded; and how to rebuild it.

For backups: tables are found in the database itself, so no plugin has to be named. Derived tables (those in
`Tables.derived`) are left out; `finish` makes them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import MetaData, inspect, text
from sqlalchemy.engine import Connection
from sqlalchemy.orm import Session

from kernel.sdk.storage import Owner, known_revisions, upgrade_within

_VERSIONS = "_alembic_version"


@dataclass(frozen=True)
class Holding:
    """What one owner has in the database: its Alembic revision and the names of its tables."""

    owner: str
    revision: str | None
    tables: tuple[str, ...]


def holdings(connection: Connection, owners: Sequence[Owner]) -> list[Holding]:
    """Every owner that has a version table, the kernel first."""
    names = _table_names(connection)
    owner_names = sorted(name.removesuffix(_VERSIONS) for name in names if name.endswith(_VERSIONS))
    derived = _derived(connection, owners)
    table_names = [name for name in names if not name.endswith(_VERSIONS) and not _covered(name, derived)]
    tables: dict[str, list[str]] = {owner: [] for owner in owner_names}
    for name in table_names:
        owner = max(
            (candidate for candidate in owner_names if name.startswith(f"{candidate}_")),
            key=len,
            default=None,
        )
        if owner is not None:
            tables[owner].append(name)
    ordered = sorted(owner_names, key=lambda owner: (owner != "kernel", owner))
    return [Holding(owner, _revision(connection, owner), tuple(tables[owner])) for owner in ordered]


def missing_revisions(owners: Sequence[Owner], required: Mapping[str, str | None]) -> list[str]:
    """The revisions in `required` (by owner) that this program can't build, one line each."""
    revisions = {owner.name: known_revisions(owner) for owner in owners}
    problems = []
    for name, revision in sorted(required.items()):
        if name not in revisions:
            problems.append(f"the plugin '{name}' is not installed here, or it is out of service")
        elif revision is not None and revision not in revisions[name]:
            problems.append(f"the tables of '{name}' are from another version (migration {revision})")
    return problems


def build(connection: Connection, owners: Sequence[Owner], revisions: Mapping[str, str | None]) -> None:
    """Drop every owner's tables and recreate those of `revisions`, empty, at their revisions.

    In the connection's transaction, which must be one of `Database.schema_change`.
    """
    _drop_all(connection, owners)
    for owner in owners:
        revision = revisions.get(owner.name)
        if revision is not None:
            upgrade_within(connection, owner, revision)


def finish(connection: Connection, owners: Sequence[Owner]) -> None:
    """Bring every owner to its newest revision, and fill the derived tables."""
    for owner in owners:
        upgrade_within(connection, owner)
    with Session(connection, join_transaction_mode="rollback_only") as session:
        for owner in owners:
            if owner.tables.derive is not None:
                owner.tables.derive(session)
        session.flush()


def _table_names(connection: Connection) -> list[str]:
    return sorted(inspect(connection).get_table_names())


def _derived(connection: Connection, owners: Iterable[Owner]) -> set[str]:
    """The names of derived tables; each also covers tables that start with it and ``_``."""
    names = {name for owner in owners for name in owner.tables.derived}
    if connection.dialect.name == "sqlite":
        query = text("SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL%'")
        names |= set(connection.scalars(query))
    return names


def _covered(name: str, derived: set[str]) -> bool:
    return any(name == one or name.startswith(f"{one}_") for one in derived)


def _revision(connection: Connection, owner: str) -> str | None:
    quoted = connection.dialect.identifier_preparer.quote(f"{owner}{_VERSIONS}")
    return connection.execute(text(f"SELECT version_num FROM {quoted}")).scalar()


def _drop_all(connection: Connection, owners: Sequence[Owner]) -> None:
    names = _table_names(connection)
    installed = {name.removesuffix(_VERSIONS) for name in names if name.endswith(_VERSIONS)}
    prefixes = tuple(f"{owner}_" for owner in installed | {owner.name for owner in owners})
    quote = connection.dialect.identifier_preparer.quote
    mine = [name for name in names if name.startswith(prefixes)]
    if connection.dialect.name == "sqlite":
        virtual = _derived(connection, ()) & set(mine)
        # Dropping a virtual table drops the tables behind it.
        for name in sorted(virtual):
            connection.execute(text(f"DROP TABLE {quote(name)}"))
        for name in sorted(set(_table_names(connection)) & set(mine)):
            connection.execute(text(f"DROP TABLE {quote(name)}"))
        return
    for name in mine:
        connection.execute(text(f"DROP TABLE {quote(name)} CASCADE"))
    for signature in _functions(connection, prefixes):
        connection.execute(text(f"DROP FUNCTION {signature} CASCADE"))


def _functions(connection: Connection, prefixes: tuple[str, ...]) -> list[str]:
    """Functions that migrations created on PostgreSQL, such as those of triggers."""
    query = text(
        "SELECT proname, oid::regprocedure::text FROM pg_proc"
        " WHERE pronamespace = current_schema()::regnamespace"
    )
    return [signature for name, signature in connection.execute(query) if name.startswith(prefixes)]


def reflected(connection: Connection, names: Iterable[str]) -> MetaData:
    """These tables as they are in the database."""
    metadata = MetaData()
    metadata.reflect(connection, only=sorted(names), resolve_fks=False)
    return metadata
