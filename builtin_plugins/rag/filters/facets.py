"""Counts per value of fields, over the documents that a filter leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, cast

from sqlalchemy import ColumnElement, String, func, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session
from sqlalchemy.sql.functions import FunctionElement

from builtin_plugins.rag.filters.compiling import (
    ROW_COLUMNS,
    bool_of,
    has_path,
    path_of_row,
    values_of,
)
from builtin_plugins.rag.metadata.fields import FieldDefinition
from builtin_plugins.rag.models import Document, MetadataValue
from builtin_plugins.rag.schemas_facets import Facet, FacetValue
from kernel.sdk import UtcDateTime

Period = Literal["year", "month"]
_LENGTHS: Final = {"year": 4, "month": 7}  # of 2026 and 2026-03


class _DayOf(FunctionElement[str]):
    """The day, as in ISO 8601, of seconds since 1970 or of a time; in UTC."""

    type = String()
    inherit_cache = True


@compiles(_DayOf)
def _day(element: _DayOf, compiler: Any, **options: Any) -> str:
    (column,) = element.clauses
    moment = compiler.process(column, **options)
    moment = moment if isinstance(column.type, UtcDateTime) else f"to_timestamp({moment})"
    return f"to_char({moment} AT TIME ZONE 'UTC', 'YYYY-MM-DD')"


@compiles(_DayOf, "sqlite")
def _date(element: _DayOf, compiler: Any, **options: Any) -> str:
    (column,) = element.clauses
    moment = compiler.process(column, **options)
    return moment if isinstance(column.type, UtcDateTime) else f"date({moment}, 'unixepoch')"


class _TopFolder(FunctionElement[str]):
    """The first part of a path; without a folder, the empty text."""

    type = String()
    inherit_cache = True


@compiles(_TopFolder)
def _split(element: _TopFolder, compiler: Any, **options: Any) -> str:
    path = compiler.process(element.clauses, **options)
    return f"substr({path}, 1, greatest(strpos({path}, '/') - 1, 0))"


@compiles(_TopFolder, "sqlite")
def _cut(element: _TopFolder, compiler: Any, **options: Any) -> str:
    path = compiler.process(element.clauses, **options)
    return f"substr({path}, 1, max(instr({path}, '/') - 1, 0))"


class FacetCounter:
    """Counts over the documents of some knowledge bases that match a condition."""

    def __init__(
        self, session: Session, base_ids: Sequence[str], matching: ColumnElement[bool], limit: int, by: Period
    ) -> None:
        self._session = session
        self._base_ids = base_ids
        self._matching = matching
        self._limit = limit
        self._by: Period = by

    def total(self) -> int:
        """How many documents match."""
        query = select(func.count()).select_from(Document).where(self._matching)
        return int(self._session.scalar(query) or 0)

    def facet(self, field: FieldDefinition) -> Facet:
        """The values of a field, most frequent first; of numbers only the least and the greatest."""
        if field.kind == "number":
            return self._numbers(field)
        return self._counts(field)

    def _numbers(self, field: FieldDefinition) -> Facet:
        value = ROW_COLUMNS[field.name] if field.of_row else MetadataValue.number
        columns = (func.min(value), func.max(value), func.count(func.distinct(Document.id)))
        least, greatest, documents = self._session.execute(self._of(field, value, *columns)).one()
        return Facet(
            field=field.name,
            kind=field.kind,
            values=[],
            documents=documents,
            min=None if least is None else float(least),
            max=None if greatest is None else float(greatest),
        )

    def _counts(self, field: FieldDefinition) -> Facet:
        value = self._value(field)
        counted = func.count(func.distinct(Document.id)).label("n")
        grouped = self._of(field, value, value.label("v"), counted).group_by("v")
        rows = self._session.execute(grouped.order_by(counted.desc(), "v").limit(self._limit + 1)).all()
        documents = self._session.scalar(self._of(field, value, func.count(func.distinct(Document.id))))
        values = [FacetValue(value=_public_value(field, row.v), count=row.n) for row in rows[: self._limit]]
        if field.kind == "date":
            values.sort(key=lambda one: str(one.value), reverse=True)
        return Facet(
            field=field.name,
            kind=field.kind,
            values=values,
            documents=int(documents or 0),
            more=len(rows) > self._limit,
        )

    def _value(self, field: FieldDefinition) -> ColumnElement[Any]:
        if field.name in ("path", "folder"):
            path = path_of_row()
            return path if field.name == "path" else func.nullif(_TopFolder(path), "")
        if field.kind == "date":
            column = ROW_COLUMNS[field.name] if field.of_row else MetadataValue.number
            return func.substr(_DayOf(column), 1, _LENGTHS[self._by])
        stored: Any = MetadataValue.number if field.kind == "boolean" else MetadataValue.text
        value: Any = ROW_COLUMNS[field.name] if field.of_row else stored
        return cast(ColumnElement[Any], value)

    def _of(self, field: FieldDefinition, value: Any, *columns: Any) -> Any:
        query = select(*columns).select_from(Document).where(self._matching, value.is_not(None))
        if field.of_row:
            return query.where(has_path()) if field.name in ("path", "folder") else query
        joined = (MetadataValue.document_id == Document.id) & values_of(field, *self._base_ids)
        return query.join(MetadataValue, bool_of(joined))


def _public_value(field: FieldDefinition, value: Any) -> Any:
    if field.kind == "boolean":
        return bool(value)
    return int(value) if field.kind == "person" else value
