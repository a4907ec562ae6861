"""Filters as conditions on `rag_document`: what a condition means is written here, once.

- A condition holds if one of the document's values does. Without a value it does not hold.
- `ne`, `nin` and `not` are the opposite of `eq`, `in` and what is inside: documents without a value match.
- Texts are equal in NFC, capitals counting; `contains`, `starts_with`, `ends_with` ignore capitals.
- A day, month or year is all of its time: `eq` is within, `gt` after its end, `lte` until its end.
- A folder is equal to all that is in it, at any depth; the empty one to all that has a path.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias, cast

from sqlalchemy import ColumnElement, Float, Select, and_, false, func, literal, not_, or_, select, true

from builtin_plugins.rag.filters.grammar import (
    FieldCondition,
    FieldValues,
    FilterGroup,
    FilterNegation,
)
from builtin_plugins.rag.filters.matching import Part, has_part
from builtin_plugins.rag.filters.moments import TimeSpan, span_of
from builtin_plugins.rag.metadata.fields import FieldDefinition
from builtin_plugins.rag.metadata.kinds import folded, nfc
from builtin_plugins.rag.models import Document, MetadataValue

Node: TypeAlias = FieldCondition | FilterGroup | FilterNegation | FieldValues
Where: TypeAlias = ColumnElement[bool]
Loc: TypeAlias = tuple[str | int, ...]
Test: TypeAlias = tuple[str, Loc, str, Any, Loc]
"""A condition on one field: its name and the place of that, the operator, the value and its place."""

PATH_PREFIX: Final = "path:"
SYNONYMS: Final[Mapping[str, str]] = {"source": "filename"}
DOCUMENT_ID: Final = FieldDefinition("document_id", "text", built_in=True, of_row=True)
_EARLIEST, _LATEST = -62_135_596_800.0, 253_402_300_799.0  # the years 1 and 9999
_PARTS: Final = ("contains", "starts_with", "ends_with")
_ORDERS: Final = ("gt", "gte", "lt", "lte")
_NEGATIVE: Final = ("ne", "nin", "exists")
_NUMBER: Final = re.compile(r"[+-]?\d{1,15}(\.\d{1,15})?", re.ASCII)
_MOST_PERIODS: Final = 200
"""Each is a comparison of its own, and SQLite limits how many follow each other."""
_OPPOSITES: Final[Mapping[str, str]] = {"ne": "eq", "nin": "in"}


class FilterMisfit(ValueError):
    """A condition that can't be; `loc` is its place in the filter."""

    def __init__(self, loc: Loc, message: str, value: object = None) -> None:
        super().__init__(message)
        self.loc = loc
        self.message = message
        self.value = value


class FilterCompiler:
    """Compiles filters for the documents of one knowledge base.

    Tests are conditions on the row of a document, or, for fields with stored values, on that of a value.

    `fields` are those that it has. A name that is in `elsewhere`, or any if that is None, is a field that its
    documents have no values of.
    """

    def __init__(
        self,
        base_id: str,
        fields: Mapping[str, FieldDefinition],
        elsewhere: Mapping[str, FieldDefinition] | None,
        now: datetime,
    ) -> None:
        self._base_id = base_id
        self._fields = {**fields, DOCUMENT_ID.name: DOCUMENT_ID}
        self._elsewhere = elsewhere
        self._now = now

    def condition(self, node: Node, loc: Loc = ()) -> Where:
        """The condition on a document's row. Raises FilterMisfit."""
        if isinstance(node, FilterGroup):
            parts = [self.condition(one, (*loc, "filters", at)) for at, one in enumerate(node.filters)]
            return and_(*parts) if node.type == "and" else or_(*parts)
        if isinstance(node, FilterNegation):
            return not_(self.condition(node.filter, (*loc, "filter")))
        if isinstance(node, FieldValues):
            return and_(true(), *(self._field(*one) for one in _pairs(node, loc)))
        return self._field(*_single(node, loc))

    def stored_ids(self, node: Node) -> Select[Any] | None:
        """A query for the same documents that needs no table but that of values; None where it can't be.

        Only for what is searched: documents of all states may have values.
        """
        if isinstance(node, FieldValues) and len(node.root) == 1:
            pairs = _pairs(node, ())
        elif isinstance(node, FieldCondition):
            pairs = [_single(node, ())]
        else:
            return None
        for key, key_loc, operator, value, _ in pairs:
            field = self.field(key, key_loc)
            if field is not None and not field.of_row and operator not in _NEGATIVE:
                return self._ids(field, _TESTS[field.kind](self, field, operator, value))
        return None

    def _field(self, key: str, key_loc: Loc, operator: str, value: Any, loc: Loc) -> Where:
        field = self.field(key, key_loc)
        if operator in _OPPOSITES:
            return not_(self._field(key, key_loc, _OPPOSITES[operator], value, loc))
        if field is None:
            return not_(false()) if operator == "exists" and value is False else false()
        if operator == "exists":
            there = _there(field, self._base_id)
            return not_(there) if value is False else there
        try:
            condition = _TESTS[field.kind](self, field, operator, value)
        except ValueError as error:
            raise FilterMisfit(loc, f"{field.name} {error}", value) from None
        return condition if field.of_row else Document.id.in_(self._ids(field, condition))

    def _ids(self, field: FieldDefinition, condition: Where) -> Select[Any]:
        mine = values_of(field, self._base_id) & condition
        return select(MetadataValue.document_id).where(mine)

    def field(self, key: str, loc: Loc) -> FieldDefinition | None:
        """A field by its name; None if only other knowledge bases have it. Raises FilterMisfit."""
        name = nfc(key)
        name = SYNONYMS.get(name, name)
        if name in self._fields:
            return self._fields[name]
        if self._elsewhere is None or name in self._elsewhere:
            return None
        names = ", ".join(sorted({*self._fields, *self._elsewhere}))
        raise FilterMisfit(loc, f"there is no field '{key[:64]}'; the fields are {names}", key[:64])

    def text(self, field: FieldDefinition, operator: str, value: Any) -> Where:
        """The test of a text."""
        if operator in _ORDERS:
            raise ValueError("is a text: compare it by eq, ne, in, nin, contains, starts_with or ends_with")
        texts = [_text(one) for one in (value if operator == "in" else [value])]
        if field.of_row:
            return _row_text(field.name, operator, texts)
        if operator in _PARTS:
            return _folded_part(operator, folded(texts[0]))
        among = MetadataValue.folded.in_({folded(one) for one in texts})
        return bool_of(among & MetadataValue.text.in_(set(texts)))

    def person(self, field: FieldDefinition, operator: str, value: Any) -> Where:
        """The test of an account's id."""
        if operator not in ("eq", "in"):
            raise ValueError("is a person: compare it by eq, ne, in or nin with the id of an account")
        accounts = {_account(one) for one in (value if operator == "in" else [value])}
        return bool_of(MetadataValue.text.in_(accounts))

    def number(self, field: FieldDefinition, operator: str, value: Any) -> Where:
        """The test of a number."""
        if operator in _PARTS:
            raise ValueError("is a number: compare it by eq, ne, in, nin, gt, gte, lt or lte")
        numbers = [_written_number(one) for one in value] if operator == "in" else [value]
        return self._among(field, operator, [TimeSpan(_number(one)) for one in numbers])

    def boolean(self, field: FieldDefinition, operator: str, value: Any) -> Where:
        """The test of true or false."""
        if operator not in ("eq", "in"):
            raise ValueError("is true or false: compare it by eq, ne, in or nin")
        values = value if operator == "in" else [value]
        if not all(isinstance(one, bool) for one in values):
            raise ValueError("must be true or false")
        return self._among(field, operator, [TimeSpan(float(one)) for one in values])

    def date(self, field: FieldDefinition, operator: str, value: Any) -> Where:
        """The test of a date."""
        if operator in _PARTS:
            raise ValueError("is a date: compare it by eq, ne, in, nin, gt, gte, lt or lte")
        spans = [span_of(one, self._now) for one in (value if operator == "in" else [value])]
        return self._among(field, operator, spans)

    def _among(self, field: FieldDefinition, operator: str, spans: Sequence[TimeSpan]) -> Where:
        column: Any = ROW_COLUMNS[field.name] if field.of_row else MetadataValue.number
        is_moment = field.of_row and field.kind == "date"
        bound: Callable[[float], Any] = _moment if is_moment else _plain if field.of_row else float
        if operator in ("eq", "in") and all(one.end is None for one in spans):
            condition = bool_of(column.in_({one.start: bound(one.start) for one in spans}.values()))
        elif len(spans) > _MOST_PERIODS:
            raise ValueError(f"takes at most {_MOST_PERIODS} days, months or years; use gte and lt")
        else:
            condition = or_(false(), *(_within(column, operator, one, bound) for one in spans))
        return and_(column.is_not(None), condition) if field.of_row else condition


def _single(node: FieldCondition, loc: Loc) -> Test:
    return node.key, (*loc, "key"), node.type, node.value, (*loc, "value")


def _pairs(node: FieldValues, loc: Loc) -> list[Test]:
    return [
        (key, (*loc, key), "in" if isinstance(value, list) else "eq", value, (*loc, key))
        for key, value in node.root.items()
        if value is not None
    ]


_TESTS: Final[Mapping[str, Callable[[FilterCompiler, FieldDefinition, str, Any], Where]]] = {
    "text": FilterCompiler.text,
    "person": FilterCompiler.person,
    "number": FilterCompiler.number,
    "boolean": FilterCompiler.boolean,
    "date": FilterCompiler.date,
}

ROW_COLUMNS: Final[Mapping[str, Any]] = {
    "document_id": Document.id,
    "filename": Document.filename,
    "content_type": Document.content_type,
    "size_bytes": Document.size_bytes,
    "page_count": Document.page_count,
    "uploaded_at": Document.uploaded_at,
    "version": Document.version,
}
"""The columns of the fields that the row has. Path and folder are parts of the identity."""


def values_of(field: FieldDefinition, *base_ids: str) -> Where:
    """The values of a field in knowledge bases."""
    return MetadataValue.knowledge_base_id.in_(base_ids) & (MetadataValue.field == field.name)


def path_of_row() -> ColumnElement[str]:
    """A document's path, for rows that `has_path` matches."""
    return func.substr(Document.identity, len(PATH_PREFIX) + 1)


def has_path() -> Where:
    """Whether a document has a path."""
    return _begins_with(PATH_PREFIX)


def _there(field: FieldDefinition, base_id: str) -> Where:
    if field.name in ("path", "folder"):
        return has_path()
    if field.of_row:
        present: Where = ROW_COLUMNS[field.name].is_not(None)
        return present
    return Document.id.in_(select(MetadataValue.document_id).where(values_of(field, base_id)))


def _row_text(name: str, operator: str, values: Sequence[str]) -> Where:
    if name == "folder":
        if operator in _PARTS:
            raise ValueError("is compared by eq, ne, in or nin, which match all in it; for parts use path")
        return or_(false(), *(_in_folder(one.strip("/")) for one in values))
    if name == "path":
        if operator in _PARTS:
            return and_(has_path(), has_part(path_of_row(), cast(Part, operator), values[0]))
        places = {f"{PATH_PREFIX}{one.strip('/')}" for one in values}
        return and_(Document.identity.is_not(None), Document.identity.in_(places))
    column = ROW_COLUMNS[name]
    if operator in _PARTS:
        return has_part(column, cast(Part, operator), values[0])
    # Names are composed when they are stored; earlier ones may be as macOS sent them.
    forms = {unicodedata.normalize(form, one) for form in ("NFC", "NFD") for one in values}
    return bool_of(column.in_(forms))


def _in_folder(folder: str) -> Where:
    return _begins_with(f"{PATH_PREFIX}{folder}/" if folder else PATH_PREFIX)


def _begins_with(start: str) -> Where:
    """Whether a document's identity begins so; LIKE would ignore capitals on SQLite."""
    return and_(Document.identity.is_not(None), func.substr(Document.identity, 1, len(start)) == start)


def _folded_part(operator: str, part: str) -> Where:
    column = MetadataValue.folded
    if operator == "contains":
        return column.contains(part, autoescape=True)
    if operator == "starts_with":
        return column.startswith(part, autoescape=True)
    return column.endswith(part, autoescape=True)


def _within(column: Any, operator: str, span: TimeSpan, bound: Callable[[float], Any] = float) -> Where:
    """How a column compares with a moment or a period."""
    start, end = bound(span.start), None if span.end is None else bound(span.end)
    if operator == "lt":
        return bool_of(column < start)
    if operator == "gte":
        return bool_of(column >= start)
    if operator == "gt":
        return bool_of(column > start if end is None else column >= end)
    if operator == "lte":
        return bool_of(column <= start if end is None else column < end)
    return bool_of(column == start if end is None else and_(column >= start, column < end))


def bool_of(condition: Any) -> Where:
    """A comparison of columns, which SQLAlchemy types loosely."""
    return cast(Where, condition)


def _plain(seconds: float) -> Any:
    return literal(seconds, Float(53))


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(min(max(seconds, _EARLIEST), _LATEST), UTC)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("is a text: put the value in quotation marks")
    if "\x00" in value:
        raise ValueError("has no value with a NUL character")
    return nfc(value)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("is a number: write the value without quotation marks")
    return float(value)


def _written_number(value: object) -> object:
    """A number of a list that is written as text: forms send lists as one text."""
    return float(value) if isinstance(value, str) and _NUMBER.fullmatch(value.strip()) else value


def _account(value: object) -> str:
    written = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    if not (written.isascii() and written.isdigit() and len(written) <= 10):
        raise ValueError("is a person: give the id of an account")
    return str(int(written))
