"""Reuses PostgreSQL databases of tests: they are restored to their first state instead of dropped.

Creating and dropping one costs the server a sixth of a second of processor time and waits for its disk. One
is reused if its schema, its settings and its initial rows are unchanged; otherwise it is dropped. It is
renamed first, so that leftover users of its address find nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncpg

_MOST = 4  # spare databases per process: the tests of a folder use few sets of plugins
_NOT_OURS = "('pg_catalog', 'information_schema', 'pg_toast')"
_SCHEMA = f"""
SELECT md5(string_agg(line, '|' ORDER BY line)) FROM (
  SELECT concat_ws(' ', n.nspname, c.relname, c.relkind, c.relpersistence, a.attname, a.atttypid,
    a.attnotnull, a.attisdropped, pg_get_expr(d.adbin, d.adrelid)) AS line
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
    LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
  WHERE n.nspname NOT IN {_NOT_OURS}
  UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname NOT IN {_NOT_OURS}
  UNION ALL SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint
    WHERE connamespace::regnamespace::text NOT IN {_NOT_OURS}
  UNION ALL SELECT concat_ws(' ', proname, prosrc) FROM pg_proc
    WHERE pronamespace::regnamespace::text NOT IN {_NOT_OURS}
  UNION ALL SELECT concat_ws(' ', tgrelid::regclass, tgname, tgenabled) FROM pg_trigger WHERE NOT tgisinternal
  UNION ALL SELECT extname FROM pg_extension
  UNION ALL SELECT concat_ws(' ', s.setrole, s.setconfig) FROM pg_db_role_setting s
    JOIN pg_database d ON d.oid = s.setdatabase WHERE d.datname = current_database()
  UNION ALL SELECT concat_ws(' ', datallowconn, datconnlimit) FROM pg_database
    WHERE datname = current_database()
) AS lines
"""
_TABLES = f"""
SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname NOT IN {_NOT_OURS} ORDER BY 1
"""
_SEQUENCES = f"""
SELECT format('%I.%I', schemaname, sequencename) AS name, start_value, last_value FROM pg_sequences
WHERE schemaname NOT IN {_NOT_OURS}
"""


@dataclass(frozen=True)
class DatabaseState:
    """The state of a database before a test used it."""

    schema: str
    tables: tuple[str, ...]
    rows: dict[str, str]
    sequences: dict[str, Any]

    @property
    def empty(self) -> list[str]:
        """The tables that had no rows."""
        return [table for table in self.tables if table not in self.rows]


@dataclass(frozen=True)
class Spare:
    """A database in the state in which it was made from a template."""

    server: str
    name: str
    template: str
    initial: DatabaseState


class Spares:
    """The spare databases."""

    def __init__(self) -> None:
        self._waiting: list[Spare] = []

    def take(self, template: str) -> Spare | None:
        """Take one that was made from this template, if there is one."""
        spare = next((spare for spare in self._waiting if spare.template == template), None)
        if spare is not None:
            self._waiting.remove(spare)
        return spare

    def keep(self, spare: Spare) -> Spare | None:
        """Keep a database; returns one to drop if there are too many."""
        self._waiting.append(spare)
        return self._waiting.pop(0) if len(self._waiting) > _MOST else None

    def take_all(self) -> list[Spare]:
        """Take all of them, at the end."""
        spares, self._waiting = self._waiting, []
        return spares


async def look(connection: asyncpg.Connection) -> DatabaseState:
    """The present state of a database."""
    tables = tuple(row[0] for row in await connection.fetch(_TABLES))
    filled = await _filled(connection, tables)
    sequences = {row["name"]: row["last_value"] for row in await connection.fetch(_SEQUENCES)}
    return DatabaseState(await _schema(connection), tables, await _rows(connection, filled), sequences)


async def put_back(connection: asyncpg.Connection, state: DatabaseState) -> bool:
    """Restore the state. False if that takes more than removing rows and setting sequences."""
    if await _schema(connection) != state.schema:
        return False
    filled = await _filled(connection, state.empty)
    if filled:
        removals = [f"DELETE FROM {table};" for table in filled]
        await connection.execute("SET session_replication_role = replica;" + "".join(removals))
    for row in await connection.fetch(_SEQUENCES):
        before = state.sequences[row["name"]]
        if row["last_value"] != before:
            at = row["start_value"] if before is None else before
            await connection.execute(
                "SELECT setval($1::text::regclass, $2, $3)", row["name"], at, before is not None
            )
    return await _rows(connection, state.rows) == state.rows


async def _schema(connection: asyncpg.Connection) -> str:
    schema: str = await connection.fetchval(_SCHEMA)
    return schema


async def _filled(connection: asyncpg.Connection, tables: Any) -> list[str]:
    query = " UNION ALL ".join(f"SELECT '{table}' WHERE EXISTS (SELECT FROM {table})" for table in tables)
    return [row[0] for row in await connection.fetch(query)] if query else []


async def _rows(connection: asyncpg.Connection, tables: Any) -> dict[str, str]:
    query = " UNION ALL ".join(
        f"SELECT '{table}', (SELECT md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {table} t)"
        for table in tables
    )
    return {row[0]: row[1] for row in await connection.fetch(query)} if query else {}
