"""The values of all documents of a knowledge base as a table (CSV): written, and read back."""

from __future__ import annotations

import asyncio
import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.rag.metadata.editing import look_up_people
from builtin_plugins.rag.metadata.fields import FieldDefinition, fields_of
from builtin_plugins.rag.metadata.kinds import FieldValue, nfc, text_of
from builtin_plugins.rag.metadata.people import People, names_of
from builtin_plugins.rag.metadata.values import FieldRefused, GivenValues
from builtin_plugins.rag.models import SUPERSEDED, Document
from builtin_plugins.rag.rights.reading import readable
from builtin_plugins.rag.schemas_metadata import MetadataEdited
from builtin_plugins.rag.services import knowledge_bases, loading
from builtin_plugins.rag.services.identities import identity_at, path_in
from builtin_plugins.rag.services.metadata import Layers, hold_base, read_layers, read_values, write_layers
from kernel.sdk import Caller, Scope, Unit, Unprocessable, scope_of

_ID, _PATH, _NAME = "document_id", "path", "filename"
_OF_DOCUMENT: Final = (_ID, _PATH, _NAME)
"""Columns that are no fields; the name is for who reads the table."""
_SEPARATOR: Final = "|"
_PART: Final = re.compile(r"(?:[^\\|]|\\.?)+")
_DELIMITERS: Final = ",;\t"
_AT_ONCE: Final = 500
_MOST_ROWS: Final = 100_000
_MOST_PROBLEMS: Final = 50
_FORMULA: Final = ("=", "+", "-", "@", "\t")
"""A spreadsheet runs a text that begins like this, so it is written behind an apostrophe; so is one that
begins so already.
"""

_Row = tuple[tuple[str, str | None, str], Mapping[str, Sequence[FieldValue]]]
"""A document's id, path and name, and its values."""


@dataclass(frozen=True)
class MetadataTable:
    """A table as it was sent: its columns, and its rows with the lines on which they end."""

    columns: Sequence[str]
    rows: Sequence[tuple[int, Sequence[str]]]


async def write_table(caller: Caller, kb_id: str) -> str:
    """The table of all documents with the fields that can be set. Raises KnowledgeBaseNotFound."""
    scope = await scope_of(caller.platform, caller.principal)
    definitions, rows = await caller.platform.database.read(_read, scope, kb_id)
    persons = {one.name for one in definitions if one.kind == "person"}
    ids = {
        int(value.text or 0)
        for _, values in rows
        for name in persons.intersection(values)
        for value in values[name]
    }
    names = await names_of(caller, ids)
    return await asyncio.to_thread(_written, definitions, rows, names)


def _written(definitions: Sequence[FieldDefinition], rows: Sequence[_Row], names: Mapping[int, str]) -> str:
    target = io.StringIO(newline="")
    writer = csv.writer(target)
    writer.writerow([*_OF_DOCUMENT, *(one.name for one in definitions)])
    for places, values in rows:
        cells = (_cell(one, values.get(one.name, ()), names) for one in definitions)
        writer.writerow([*(_harmless(one or "") for one in places), *cells])
    return target.getvalue()


def _read(session: Session, scope: Scope, kb_id: str) -> tuple[list[FieldDefinition], list[_Row]]:
    knowledge_bases.find(session, scope, kb_id)
    definitions = [one for one in fields_of(session, kb_id).values() if not one.of_row]
    mine = (Document.knowledge_base_id == kb_id) & (Document.status != SUPERSEDED)
    query = (
        select(Document.id, Document.identity, Document.filename)
        .where(mine, readable(scope))
        .order_by(Document.uploaded_at, Document.id)
    )
    rows: list[_Row] = []
    places = iter(session.execute(query).all())
    while some := list(islice(places, _AT_ONCE)):
        values = read_values(session, [row.id for row in some])
        rows += [((row.id, path_in(row.identity), row.filename), values.get(row.id, {})) for row in some]
    return definitions, rows


def _cell(field: FieldDefinition, values: Sequence[FieldValue], names: Mapping[int, str]) -> str:
    texts = []
    for value in values:
        text = text_of(field.kind, value)
        if field.kind == "person":
            text = names.get(int(text), text)
        texts.append(_escaped(text) if field.many else text)
    joined = _SEPARATOR.join(texts)
    return _harmless(joined) if field.kind == "text" else joined


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace(_SEPARATOR, f"\\{_SEPARATOR}")


def _harmless(text: str) -> str:
    return f"'{text}" if text.lstrip("'").startswith(_FORMULA) else text


def _original(cell: str) -> str:
    text = cell.strip()
    return text[1:] if text[:1] == "'" and text.lstrip("'").startswith(_FORMULA) else text


def read_table(raw: bytes) -> MetadataTable:
    """A table that was sent: UTF-8, with commas, semicolons or tabs. Raises Unprocessable."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise _refusal([(line, "", "is not UTF-8 text; save the table as CSV UTF-8")]) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise _refusal([(line, "", "contains a NUL character; remove it")])
    first = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        columns = [nfc(name.strip()) for name in next(reader, [])]
        rows = [(reader.line_num, row) for row in islice(_full(reader), _MOST_ROWS + 1)]
    except csv.Error as error:
        raise _refusal([(reader.line_num, "", f"is not CSV: {error}")]) from None
    if len(rows) > _MOST_ROWS:
        raise _refusal([(rows[-1][0], "", f"is one too many: send at most {_MOST_ROWS} lines at once")])
    if _ID not in columns and _PATH not in columns:
        raise _refusal([(1, "", f"must name a column {_ID} or {_PATH}, by which documents are found")])
    twice = [name for name in columns if columns.count(name) > 1]
    if twice:
        raise _refusal([(1, twice[0], "is there twice")])
    uneven = [line for line, row in rows if len(row) != len(columns)]
    if uneven:
        raise _refusal([(uneven[0], "", f"must have {len(columns)} cells, as the first line has")])
    return MetadataTable(columns, rows)


def _full(reader: Iterator[list[str]]) -> Iterator[list[str]]:
    return (row for row in reader if any(cell.strip() for cell in row))


def _refusal(problems: Sequence[tuple[int, str, str]]) -> Unprocessable:
    """The answer that names the line and column of each problem."""
    return Unprocessable(
        [
            {
                "type": "value_error",
                "loc": ["body", line, *([column] if column else [])],
                "msg": f"line {line}, {column}: {why}" if column else f"line {line} {why}",
                "input": None,
            }
            for line, column, why in problems
        ]
    )


async def apply_table(caller: Caller, kb_id: str, table: MetadataTable) -> MetadataEdited:
    """Set by hand what the table says differently, in one transaction.

    Raises KnowledgeBaseNotFound, NotOwner, Unprocessable.
    """
    fields = await caller.platform.database.read(fields_of, kb_id)
    persons = await asyncio.to_thread(_persons, fields, table)
    people = await look_up_people(caller, kb_id, persons)
    scope = await scope_of(caller.platform, caller.principal)
    return await caller.platform.database.write(_apply, scope, kb_id, table, people)


def _persons(fields: Mapping[str, FieldDefinition], table: MetadataTable) -> list[dict[str, Any]]:
    """The cells in which there are accounts, by line and field."""
    persons = {name for name, one in fields.items() if one.kind == "person"}
    if persons.isdisjoint(table.columns):
        return []
    rows = (_row_values(fields, table.columns, row) for _, row in table.rows)
    return [{name: one[name] for name in persons.intersection(one)} for one in rows]


def _row_values(
    fields: Mapping[str, FieldDefinition], columns: Sequence[str], row: Sequence[str]
) -> dict[str, Any]:
    """The values of a row, by field; None for an empty cell."""
    values: dict[str, Any] = {}
    for name, cell in zip(columns, row, strict=True):
        if name in _OF_DOCUMENT:
            continue
        text, definition = _original(cell), fields.get(name)
        if definition is not None and definition.many and text:
            parts = (_unescaped(one).strip() for one in _PART.findall(text))
            values[name] = [one for one in parts if one] or None
        else:
            values[name] = text or None
    return values


def _unescaped(text: str) -> str:
    return re.sub(r"\\([\\|])", r"\1", text)


def _apply(unit: Unit, scope: Scope, kb_id: str, table: MetadataTable, people: People) -> MetadataEdited:
    loading.hold_own(unit.session, scope, kb_id)
    hold_base(unit, kb_id)
    reader = GivenValues(fields_of(unit.session, kb_id), people)
    problems: list[tuple[int, str, str]] = []
    for name in table.columns:
        try:
            if name not in _OF_DOCUMENT:
                reader.field(name)
        except FieldRefused as error:
            problems.append((1, name, error.why))
    if problems:
        raise _refusal(problems)
    changed, rows, document_ids = 0, iter(table.rows), set[str]()
    while some := list(islice(rows, _AT_ONCE)):
        ids_by_line = _documents(unit, scope, kb_id, table.columns, some, problems)
        for line, document_id in sorted(ids_by_line.items()):
            if document_id in document_ids:
                problems.append((line, "", "is about a document that an earlier line is about"))
            document_ids.add(document_id)
        layers = read_layers(unit.session, sorted(set(ids_by_line.values())))
        for line, row in some:
            if line in ids_by_line:
                _set_row(
                    layers[ids_by_line[line]],
                    reader,
                    _row_values(reader.fields, table.columns, row),
                    line,
                    problems,
                )
        if len(problems) >= _MOST_PROBLEMS:
            break
        changed += sum(bool(one.changed) for one in layers.values())
        write_layers(unit, kb_id, layers)
    if problems:
        raise _refusal(sorted(problems)[:_MOST_PROBLEMS])
    return MetadataEdited(documents=changed)


def _set_row(
    layers: Layers,
    reader: GivenValues,
    row: Mapping[str, object],
    line: int,
    problems: list[tuple[int, str, str]],
) -> None:
    """Set what a row says differently: what stays the same keeps its origin."""
    reader = reader.keeping(layers)
    for name, value in row.items():
        winning = layers.winning(name)
        before = () if winning is None else winning[1]
        try:
            values = reader.read_field(name, value)
        except FieldRefused as error:
            problems.append((line, name, error.why))
            continue
        if values != before:
            layers.set("hand", {name: values})


def _documents(
    unit: Unit,
    scope: Scope,
    kb_id: str,
    columns: Sequence[str],
    rows: Sequence[tuple[int, Sequence[str]]],
    problems: list[tuple[int, str, str]],
) -> dict[int, str]:
    """The locked documents of rows, by their lines: by their ids, else by their paths."""
    named = {line: dict(zip(columns, map(_original, row), strict=True)) for line, row in rows}
    by_id = {line: one[_ID] for line, one in named.items() if one.get(_ID)}
    by_path = {line: one[_PATH] for line, one in named.items() if line not in by_id and one.get(_PATH)}
    problems += [
        (line, "", f"names no document: fill in {_ID} or {_PATH}")
        for line in named
        if line not in by_id and line not in by_path
    ]
    identities: dict[int, str] = {}
    for line, path in by_path.items():
        try:
            identities[line] = identity_at(path)
        except Unprocessable:
            problems.append((line, _PATH, "is no path that a document can have"))
    mine = (Document.knowledge_base_id == kb_id) & (Document.status != SUPERSEDED)
    either = Document.id.in_(set(by_id.values())) | Document.identity.in_(set(identities.values()))
    columns_of = (Document.id, Document.identity, Document.version)
    query = select(*columns_of).where(mine, either, readable(scope)).order_by(Document.version, Document.id)
    documents = unit.session.execute(query.with_for_update()).all()
    # At a path, the newest version.
    ids, at_path = {row.id for row in documents}, {row.identity: row.id for row in documents}
    ids_by_line: dict[int, str] = {}
    for line, reference, document_id, column in (
        *((line, one, one if one in ids else None, _ID) for line, one in by_id.items()),
        *((line, by_path[line], at_path.get(one), _PATH) for line, one in identities.items()),
    ):
        if document_id is None:
            problems.append((line, column, f"this knowledge base has no document '{reference[:64]}'"))
        else:
            ids_by_line[line] = document_id
    return ids_by_line
