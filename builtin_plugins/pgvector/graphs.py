"""HNSW graphs of large collections, one partial index each, built and removed in the background.

They are built concurrently, so no search or write waits. A build takes one core of the database server for
about a minute per hundred thousand points.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import Row
from sqlalchemy import text as sql
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import Session

from builtin_plugins.vectors.api import DROPPED
from kernel.sdk import Database

log = logging.getLogger("platform.vectors")

BUILD_ABOVE = 50_000
"""Number of points above which comparing all of them takes too long."""

_LARGEST_DIMENSION = 4000  # pgvector's limit for an HNSW index over halfvec
_PREFIX = "pgvector_point_hnsw_"
_LOCK_KEY = 0x686E7377  # "hnsw": one builder at a time

_MISSING = sql(
    "SELECT c.id, c.dimension FROM vectors_collection c"
    " WHERE (CAST(:ids AS integer[]) IS NULL OR c.id = ANY(:ids)) AND c.dimension <= :dimension"
    f" AND NOT starts_with(c.name, '{DROPPED}')"
    " AND NOT EXISTS (SELECT FROM pg_index WHERE indisvalid"
    f" AND indexrelid = to_regclass('{_PREFIX}' || c.id))"
    " AND (SELECT count(*) FROM (SELECT FROM pgvector_point v WHERE v.collection_id = c.id"
    " LIMIT :above + 1) counted) > :above ORDER BY c.id"
)

_LEFT_OVER = sql(
    "SELECT relname FROM pg_class WHERE relkind = 'i' AND pg_table_is_visible(oid)"
    f" AND relname ~ '^{_PREFIX}[0-9]+$'"
    f" AND NOT EXISTS (SELECT FROM vectors_collection c WHERE relname = '{_PREFIX}' || c.id)"
)

# Without parallel workers: they share memory through /dev/shm, which has only 64 MB in a container. The
# memory holds a graph of some 400,000 points of 384 dimensions; a larger one is built more slowly.
_SETTINGS = (
    "SET maintenance_work_mem = '512MB'",
    "SET max_parallel_maintenance_workers = 0",
    "SET statement_timeout = 0",
    "SET lock_timeout = 0",
)


def graph_name(collection_id: int) -> str:
    """The name of a collection's index."""
    return f"{_PREFIX}{collection_id:d}"


def graph_key(dimension: int, table: str = "") -> str:
    """The expression that a graph indexes; ordering by the same one may use it."""
    return f"CAST({table}embedding AS halfvec({dimension:d}))"


class Graphs:
    """Builds and drops graphs as collections change."""

    def __init__(self, database: Database, build_above: int) -> None:
        self._database = database
        self._build_above = build_above
        self._changed: set[int] = set()
        self._check_all = False
        self._task: asyncio.Task[None] | None = None

    def look_after(self, collection_id: int | None = None) -> None:
        """Check in the background whether this collection (None: any) needs a graph."""
        if collection_id is None:
            self._check_all = True
        else:
            self._changed.add(collection_id)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())

    async def settled(self) -> None:
        """Wait until everything passed to `look_after` is done."""
        if self._task is not None:
            await self._task

    async def close(self) -> None:
        """Abandon what is under way."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _work(self) -> None:
        while self._check_all or self._changed:
            ids = None if self._check_all else sorted(self._changed)
            self._check_all, self._changed = False, set()
            try:
                await self._tidy(ids)
            except (SQLAlchemyError, OSError):
                log.warning(
                    "vector graphs can't be built at the moment; searches compare all vectors", exc_info=True
                )

    async def _tidy(self, ids: list[int] | None) -> None:
        if not await self._changes(ids):
            return
        async with self._builder() as connection:
            if connection is not None:
                for statement in await self._changes(ids):
                    await connection.execute(sql(statement))

    async def _changes(self, ids: list[int] | None) -> list[str]:
        """The statements that create missing graphs and drop leftover or half-built ones."""
        values = {"ids": ids, "dimension": _LARGEST_DIMENSION, "above": self._build_above}
        missing, left_over = await self._database.read(_graph_changes, values, also_left_over=ids is None)
        dropped = [f"DROP INDEX CONCURRENTLY IF EXISTS {name}" for name in left_over]
        return dropped + [line for row in missing for line in _building(row.id, row.dimension)]

    @asynccontextmanager
    async def _builder(self) -> AsyncIterator[AsyncConnection | None]:
        """A connection to build with; None while another process builds.

        It is discarded afterwards, with its lock and its settings. The lock is only tried: waiting for it
        would hold a snapshot, which a concurrent build waits for in turn.
        """
        async with self._database.session_connection() as connection:
            try:
                has_lock = await connection.scalar(
                    sql("SELECT pg_try_advisory_lock(:key)"), {"key": _LOCK_KEY}
                )
                for statement in _SETTINGS:
                    await connection.execute(sql(statement))
                yield connection if has_lock else None
            finally:
                await connection.invalidate()


def _graph_changes(
    session: Session, values: dict[str, Any], *, also_left_over: bool
) -> tuple[Sequence[Row[Any]], Sequence[str]]:
    left_over = session.scalars(_LEFT_OVER).all() if also_left_over else ()
    return session.execute(_MISSING, values).all(), left_over


def _building(collection_id: int, dimension: int) -> list[str]:
    name = graph_name(collection_id)
    return [
        f"DROP INDEX CONCURRENTLY IF EXISTS {name}",
        f"CREATE INDEX CONCURRENTLY {name} ON pgvector_point"
        f" USING hnsw (({graph_key(dimension)}) halfvec_ip_ops) WHERE collection_id = {collection_id:d}",
    ]
