"""Chooses a database's vector store and sets up pgvector: the extension, a table, its rows.

Not a migration, because it depends on the server's features and may come and go with the setting. The table
is derived from `vectors_point` and can always be rebuilt.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import select
from sqlalchemy import text as sql
from sqlalchemy.exc import DBAPIError

from builtin_plugins.pgvector.store import PgVectorStore
from builtin_plugins.vectors.api import IndexFolders, PointRecord, SqlVectorStore
from kernel.sdk import Database, StartupError, Unit
from kernel.sdk.storage import installation_lock

log = logging.getLogger("platform.vectors")

Choice = Literal["auto", "faiss", "pgvector"]

_BATCH = 2000
_NOT_ALLOWED = "42501"  # SQLSTATE insufficient_privilege
_SETTING = "PLATFORM_VECTOR_STORE (setting 'vectors.store')"

_TABLE = (
    "CREATE TABLE IF NOT EXISTS pgvector_point ("
    " label bigint PRIMARY KEY REFERENCES vectors_point ON DELETE CASCADE,"
    " collection_id integer NOT NULL, embedding halfvec NOT NULL)",
    # In the row itself if it fits: searches read every vector.
    "ALTER TABLE pgvector_point ALTER COLUMN embedding SET STORAGE MAIN",
    "CREATE INDEX IF NOT EXISTS ix_pgvector_point_collection_id ON pgvector_point (collection_id)",
)

_STATE = sql(
    "SELECT (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS installed,"
    " (SELECT default_version FROM pg_available_extensions WHERE name = 'vector') AS available,"
    " to_regtype('halfvec') IS NOT NULL AS in_reach, to_regclass('vectors_point') IS NOT NULL AS has_points,"
    " to_regclass('pgvector_point') IS NOT NULL AS is_prepared"
)

_LACKING = "NOT EXISTS (SELECT FROM pgvector_point v WHERE v.label = vectors_point.label)"
_WRITE = sql(
    "INSERT INTO pgvector_point (label, collection_id, embedding)"
    " VALUES (:label, :collection_id, CAST(CAST(:vector AS real[]) AS halfvec)) ON CONFLICT DO NOTHING"
)


class PgvectorUnfit(Exception):
    """Why this database can't search with pgvector, and the remedy."""


@dataclass(frozen=True)
class State:
    """The extension's versions in the database; None if it lacks it."""

    installed: str | None
    available: str | None
    in_reach: bool
    has_points: bool
    is_prepared: bool

    def check(self) -> None:
        """Raise Unfit unless a suitable version of the extension is installed or can be."""
        if self.installed is None and self.available is None:
            raise PgvectorUnfit(
                "the server lacks the extension 'vector': install pgvector 0.8 or newer there"
            )
        if _parsed(self.installed or self.available or "") < (0, 8):
            raise PgvectorUnfit(
                f"the extension 'vector' is {self.installed or self.available}, older than 0.8:"
                " install a newer pgvector, then run ALTER EXTENSION vector UPDATE"
            )
        if self.installed is not None and not self.in_reach:
            raise PgvectorUnfit(
                "the extension 'vector' is in a schema that is not in the role's search_path: add it"
            )


async def open_vector_store(
    database: Database, choice: Choice, *, apply: bool, folders: IndexFolders | None = None
) -> SqlVectorStore:
    """The store that `choice` stands for on this database. With `apply`, pgvector is set up.

    Without it, a database that was never prepared is searched with FAISS until somebody prepares it. Raises
    StartupError if pgvector is required but unavailable.
    """
    if choice == "faiss" or (choice == "auto" and database.is_sqlite):
        return SqlVectorStore(database, folders=folders)
    try:
        ready = await prepare(database, apply=apply)
    except PgvectorUnfit as error:
        if choice == "pgvector":
            raise StartupError(f"{_SETTING} is 'pgvector', but {error}; or set it to 'auto'") from None
        log.info("vectors are searched with FAISS: %s", error)
        return SqlVectorStore(database, folders=folders)
    if not ready:
        log.warning("vectors are searched with FAISS until 'platformctl db upgrade' has prepared pgvector")
    return PgVectorStore(database, folders=folders) if ready else SqlVectorStore(database, folders=folders)


async def prepare(database: Database, *, apply: bool) -> bool:
    """Whether all is there; with `apply`, create what is missing. Raises Unfit if that is impossible."""
    if database.is_sqlite:
        raise PgvectorUnfit("the database is SQLite: set DATABASE_URL=postgresql://…")
    state = await _state(database)
    if apply and state.has_points and not (state.is_prepared and await _complete(database)):
        async with installation_lock(database, "migrating"):
            await _make(database)
            await _backfill(database)
        return True
    return state.is_prepared


async def _state(database: Database) -> State:
    state = State(**(await database.read(lambda session: session.execute(_STATE).one()))._mapping)
    state.check()
    return state


async def _make(database: Database) -> None:
    try:
        async with database.connection() as connection:
            await connection.execute(sql("CREATE EXTENSION IF NOT EXISTS vector"))
            for statement in _TABLE:
                await connection.execute(sql(statement))
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != _NOT_ALLOWED:
            raise
        raise PgvectorUnfit(
            "the role may not create the extension 'vector': run CREATE EXTENSION vector in this"
            " database as its owner or a superuser"
        ) from None


async def _complete(database: Database) -> bool:
    lacking = select(PointRecord.label).where(sql(_LACKING)).limit(1)
    return await database.read(lambda session: session.scalar(lacking)) is None


async def _backfill(database: Database) -> None:
    """Copy the vectors of points that were written under another setting."""
    last = done = 0
    while True:
        rows = await database.write(_copy_some, last)
        if not rows:
            break
        last, done = rows[-1].label, done + len(rows)
        log.info("prepared %d older vectors for pgvector", done)


def _copy_some(unit: Unit, last: int) -> Sequence[Any]:
    """Copy the vectors of the next points; these are locked, as deleting one would break the reference."""
    query = (
        select(PointRecord.label, PointRecord.collection_id, PointRecord.vector)
        .where(PointRecord.label > last, sql(_LACKING))
        .order_by(PointRecord.label)
        .limit(_BATCH)
        .with_for_update(key_share=True, read=True)
    )
    rows: Sequence[Any] = unit.session.execute(query).all()
    if rows:
        unit.session.execute(_WRITE, [_values(row) for row in rows])
    return rows


def _values(row: Any) -> dict[str, Any]:
    import numpy as np

    vector = np.frombuffer(row.vector, dtype=np.float16).astype(np.float32)
    return {"label": row.label, "collection_id": row.collection_id, "vector": vector.tolist()}


def _parsed(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
