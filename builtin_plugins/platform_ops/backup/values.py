"""Column values as JSON, in a form that both databases share.

Times are ISO 8601 in UTC, bytes base64, decimals text. JSON documents are text, too, to keep NULL and JSON's
`null` apart. Columns are described by the database, not by models: an archive made before an upgrade has
tables that the models no longer know.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.types import TypeEngine

from builtin_plugins.platform_ops.backup.errors import ArchiveBroken, BackupFailed
from builtin_plugins.platform_ops.backup.manifest import Column, Kind

_KINDS: tuple[tuple[type[TypeEngine[Any]], Kind], ...] = (
    (sa.JSON, "json"),
    (sa.Boolean, "bool"),
    (sa.LargeBinary, "bytes"),
    (sa.BINARY, "bytes"),
    (sa.VARBINARY, "bytes"),
    (sa.DateTime, "time"),
    (sa.Date, "date"),
    (sa.Integer, "int"),
    (sa.Float, "float"),
    (sa.Numeric, "decimal"),
    (sa.Uuid, "uuid"),
    (sa.String, "text"),
)
_SQLITE_TIME = "%Y-%m-%d %H:%M:%S.%f"
_MODULUS = 2**256


def kind_of(column: sa.Column[Any]) -> Kind:
    """How a column's values are encoded. Raises BackupFailed for a type that both databases don't share."""
    for column_type, kind in _KINDS:
        if isinstance(column.type, column_type):
            return kind
    raise BackupFailed(
        f"the column {column.table.name}.{column.name} has the type {column.type!r}, which backups don't know"
    )


def selected(column: sa.Column[Any], kind: Kind, *, sqlite: bool) -> sa.ColumnElement[Any]:
    """The column in a query, as text if the driver would lose information."""
    if kind == "json" or (kind == "uuid" and not sqlite):
        return sa.type_coerce(column, sa.Text) if sqlite else sa.cast(column, sa.Text)
    if sqlite and kind in ("time", "date", "uuid"):
        return sa.type_coerce(column, sa.Text)
    return column


def written(value: Any, kind: Kind) -> Any:
    """A value in the form that is stored in the archive."""
    if value is None:
        return None
    return _WRITTEN[kind](value) if kind in _WRITTEN else value


def stored_type(column: sa.Column[Any], kind: Kind, *, sqlite: bool) -> TypeEngine[Any]:
    """The type to write a column with."""
    if sqlite and kind in ("json", "time", "date", "uuid"):
        return sa.Text()
    if kind == "json":
        binary = isinstance(column.type, postgresql.JSONB)
        return postgresql.JSONB(none_as_null=True) if binary else postgresql.JSON(none_as_null=True)
    return column.type


def to_store(value: Any, kind: Kind, *, sqlite: bool) -> Any:
    """A value from the archive in the form that the database takes. Raises ArchiveBroken."""
    if value is None:
        return None
    try:
        return (_TO_SQLITE if sqlite else _TO_POSTGRES)[kind](value)
    except (ValueError, TypeError, ArithmeticError):
        raise ArchiveBroken(f"'{str(value)[:40]}' is not a valid value of type '{kind}'") from None


class RowDigest:
    """The sum of the hashes of rows, independent of their order and of how a database formats JSON."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._json = [at for at, column in enumerate(columns) if column.kind == "json"]
        self._floats = [at for at, column in enumerate(columns) if column.kind == "float"]
        self._sum = 0
        self.rows = 0

    def add(self, row: Sequence[Any]) -> None:
        """Add a row, with its values as in the archive."""
        values = list(row)
        for at in self._json:
            if values[at] is not None:
                values[at] = ["json", _number_of_either(json.loads(values[at]))]
        for at in self._floats:
            values[at] = None if values[at] is None else float(values[at])
        canonical = json.dumps(values, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        digest = hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).digest()
        self._sum = (self._sum + int.from_bytes(digest, "big")) % _MODULUS
        self.rows += 1

    def hex(self) -> str:
        """The sum, as 64 digits."""
        return f"{self._sum:064x}"


def _number_of_either(document: Any) -> Any:
    """A document as both databases store it: SQLite makes a bare `2.0` the integer 2."""
    whole = isinstance(document, float) and document.is_integer()
    return int(document) if whole else document


def _json_text(value: Any) -> str:
    # SQLite stores a bare number as one: the affinity of a column of type JSON is numeric.
    return value if isinstance(value, str) else json.dumps(value)


def _time(value: Any) -> str:
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _moment(value: str) -> datetime:
    if not value.endswith("Z"):
        raise ValueError(value)
    return datetime.fromisoformat(value)


def _bytes(value: str) -> bytes:
    return base64.b64decode(value, validate=True)


def _json(value: str) -> Any:
    decoded = json.loads(value)
    return sa.JSON.NULL if decoded is None else decoded


def _checked_json(value: str) -> str:
    json.loads(value)
    return value


def _exactly(kind: type[Any]) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if type(value) is not kind:
            raise TypeError
        return value

    return check


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    return float(value)


def _uuid_hex(value: str) -> str:
    return value.replace("-", "")


_WRITTEN: Mapping[Kind, Callable[[Any], Any]] = {
    "bytes": lambda value: base64.b64encode(value).decode(),
    "time": _time,
    "date": str,
    "decimal": str,
    "bool": bool,
    "json": _json_text,
    "uuid": lambda value: str(value).replace("-", ""),
}
_SHARED: Mapping[Kind, Callable[[Any], Any]] = {
    "bool": _exactly(bool),
    "bytes": _bytes,
    "decimal": Decimal,
    "float": _float,
    "int": _exactly(int),
    "text": _exactly(str),
    "uuid": _uuid_hex,
}
_TO_SQLITE: Mapping[Kind, Callable[[Any], Any]] = {
    **_SHARED,
    "date": lambda value: date.fromisoformat(value).isoformat(),
    "json": _checked_json,
    "time": lambda value: _moment(value).strftime(_SQLITE_TIME),
}
_TO_POSTGRES: Mapping[Kind, Callable[[Any], Any]] = {
    **_SHARED,
    "date": date.fromisoformat,
    "json": _json,
    "time": _moment,
}
