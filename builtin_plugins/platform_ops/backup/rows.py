"""Reads rows from a database and writes them to one, table by table, in the caller's transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from builtin_plugins.platform_ops.backup import holdings
from builtin_plugins.platform_ops.backup.errors import ArchiveBroken
from builtin_plugins.platform_ops.backup.manifest import ArchivedOwner, ArchivedTable, Column
from builtin_plugins.platform_ops.backup.objects import LineCutter, Objects, lines_of
from builtin_plugins.platform_ops.backup.values import (
    RowDigest,
    kind_of,
    selected,
    stored_type,
    to_store,
    written,
)
from kernel.sdk import off_the_loop

JOURNAL = "platform_ops_backup_job"
"""The history of this installation's backups, which a restore doesn't change."""
_AT_ONCE = 500
_LONGEST_ROW = 1024 * 1024 * 1024

Report = Callable[[str, int], None]
"""Called with each table and the number of rows done."""


def take_owners(
    connection: Connection, owners: Sequence[Any], objects: Objects, report: Report
) -> list[ArchivedOwner]:
    """Write all rows of every owner into pieces. `connection` must see a single state of the database."""
    archived = []
    for holding in holdings.holdings(connection, owners):
        names = [name for name in holding.tables if name != JOURNAL]
        tables = holdings.reflected(connection, names)
        table_records = [_take_table(connection, tables.tables[name], objects, report) for name in names]
        archived.append(ArchivedOwner(name=holding.owner, revision=holding.revision, tables=table_records))
    return archived


def _take_table(connection: Connection, table: sa.Table, objects: Objects, report: Report) -> ArchivedTable:
    columns = columns_of(table)
    cutter, digest = LineCutter(objects), RowDigest(columns)
    for rows in _batches(_rows(connection, table, columns)):
        off_the_loop(lambda rows=rows: _write(rows, columns, cutter, digest))  # type: ignore[misc]
        report(table.name, len(rows))
    return ArchivedTable(
        name=table.name,
        columns=columns,
        rows=digest.rows,
        digest=digest.hex(),
        highest=highest(connection, table),
        pieces=off_the_loop(cutter.end),
    )


def _write(rows: list[Any], columns: Sequence[Column], cutter: LineCutter, digest: RowDigest) -> None:
    for row in rows:
        values = [written(value, column.kind) for value, column in zip(row, columns, strict=True)]
        digest.add(values)
        line = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
        cutter.add(line.encode("utf-8", "surrogatepass") + b"\n")


def columns_of(table: sa.Table) -> list[Column]:
    """The columns of a table, each with its kind. Raises BackupFailed."""
    return [Column(name=column.name, kind=kind_of(column)) for column in table.columns]


def _rows(connection: Connection, table: sa.Table, columns: Sequence[Column]) -> Iterator[Any]:
    sqlite = connection.dialect.name == "sqlite"
    expressions = [
        selected(table.columns[column.name], column.kind, sqlite=sqlite).label(column.name)
        for column in columns
    ]
    query = sa.select(*expressions).select_from(table).order_by(*table.primary_key.columns)
    with connection.execute(query.execution_options(yield_per=_AT_ONCE)) as result:
        yield from result


def _batches(rows: Iterator[Any]) -> Iterator[list[Any]]:
    while batch := list(islice(rows, _AT_ONCE)):
        yield batch


def check_rows(table: ArchivedTable, objects: Objects, report: Report) -> None:
    """Read every row of an archived table. Raises ArchiveBroken."""
    digest = RowDigest(table.columns)
    for rows in _batches(_archived(table, objects)):
        for row in rows:
            digest.add(row)
        report(table.name, len(rows))
    if (digest.rows, digest.hex()) != (table.rows, table.digest):
        raise ArchiveBroken(f"the rows of {table.name} are not those that were archived")


def put_rows(
    connection: Connection, archived: ArchivedTable, table: sa.Table, objects: Objects, report: Report
) -> None:
    """Fill an empty table. Raises ArchiveBroken if it doesn't match the archived one."""
    sqlite = connection.dialect.name == "sqlite"
    columns = {column.name: column for column in archived.columns}
    if set(columns) != set(table.columns.keys()):
        differing = ", ".join(sorted(set(columns) ^ set(table.columns.keys())))
        raise ArchiveBroken(f"the columns of {archived.name} are not those of its revision: {differing}")
    types = {
        name: stored_type(table.columns[name], column.kind, sqlite=sqlite) for name, column in columns.items()
    }
    target = sa.table(archived.name, *(sa.column(name, kind) for name, kind in types.items()))
    insert = sa.insert(target)

    def read(rows: list[Any]) -> list[dict[str, Any]]:
        return [
            {
                column.name: to_store(value, column.kind, sqlite=sqlite)
                for column, value in zip(archived.columns, row, strict=True)
            }
            for row in rows
        ]

    source = _archived(archived, objects)
    while rows := off_the_loop(lambda: list(islice(source, _AT_ONCE))):
        connection.execute(insert, off_the_loop(lambda rows=rows: read(rows)))  # type: ignore[misc]
        report(archived.name, len(rows))
    continue_after(connection, table, archived.highest)


def compare_rows(connection: Connection, archived: ArchivedTable, table: sa.Table) -> str | None:
    """How a table differs from the archived one; None if it is the same, row by row."""
    columns = {column.name: column for column in columns_of(table)}
    ordered = [columns[column.name] for column in archived.columns]
    digest = RowDigest(archived.columns)
    for rows in _batches(_rows(connection, table, ordered)):
        for row in rows:
            digest.add(
                [written(value, column.kind) for value, column in zip(row, archived.columns, strict=True)]
            )
    if digest.rows != archived.rows:
        return f"{archived.name}: {digest.rows} rows instead of {archived.rows}"
    return None if digest.hex() == archived.digest else f"{archived.name}: the rows differ"


def _archived(table: ArchivedTable, objects: Objects) -> Iterator[list[Any]]:
    width = len(table.columns)
    for line in lines_of(objects.read_all(table.pieces), _LONGEST_ROW):
        try:
            row = json.loads(line)
        except ValueError:
            raise ArchiveBroken(f"a row of {table.name} can't be read") from None
        if not isinstance(row, list) or len(row) != width:
            raise ArchiveBroken(f"a row of {table.name} does not fit its columns")
        yield row


def _numbered(table: sa.Table) -> sa.Column[Any] | None:
    """The column that the database numbers, if there is one."""
    keys = list(table.primary_key.columns)
    return keys[0] if len(keys) == 1 and isinstance(keys[0].type, sa.Integer) else None


def highest(connection: Connection, table: sa.Table) -> int | None:
    """The last number given, even to a row that is gone, as it must not be given again."""
    column = _numbered(table)
    if column is None:
        return None
    if connection.dialect.name == "sqlite":
        if not _has_numbers(connection):
            return None
        query = sa.text("SELECT seq FROM sqlite_sequence WHERE name = :name")
        number = connection.execute(query, {"name": table.name}).scalar()
        return None if number is None else int(number)
    sequence = _sequence(connection, table, column)
    if sequence is None:
        return None
    last, called = connection.execute(sa.text(f"SELECT last_value, is_called FROM {sequence}")).one()
    return int(last) if called else int(last) - 1


def _has_numbers(connection: Connection) -> bool:
    query = sa.text("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_sequence'")
    return connection.execute(query).scalar() is not None


def _sequence(connection: Connection, table: sa.Table, column: sa.Column[Any]) -> str | None:
    query = sa.text("SELECT pg_get_serial_sequence(:table, :column)")
    quoted = connection.dialect.identifier_preparer.quote(table.name)
    sequence: str | None = connection.execute(query, {"table": quoted, "column": column.name}).scalar()
    return sequence


def continue_after(connection: Connection, table: sa.Table, last_given: int | None) -> None:
    """Number the next row after all existing ones, and after the last number, `last_given`."""
    column = _numbered(table)
    if column is None:
        return
    last = connection.execute(sa.select(sa.func.max(column))).scalar() or 0
    number = max(int(last), last_given or 0)
    if connection.dialect.name == "sqlite":
        if last_given is None or not _has_numbers(connection):
            return
        values = {"name": table.name, "seq": number}
        changed = connection.execute(
            sa.text("UPDATE sqlite_sequence SET seq = :seq WHERE name = :name"), values
        )
        if not changed.rowcount:
            connection.execute(
                sa.text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :seq)"), values
            )
        return
    sequence = _sequence(connection, table, column)
    if sequence is not None:
        values = {"sequence": sequence, "number": max(number, 1), "called": number >= 1}
        connection.execute(
            sa.text("SELECT setval(CAST(CAST(:sequence AS text) AS regclass), :number, :called)"), values
        )
