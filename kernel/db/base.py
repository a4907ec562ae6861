"""Declarative bases, each with its own metadata, table prefix and constraint names (house rule 3).

Also the types of columns and of bound values. A set of ids is one bound value (`Among`, `Ids`): the
statement's text and plan are the same for any number of ids.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import (
    JSON,
    BindParameter,
    Boolean,
    ColumnElement,
    DateTime,
    Integer,
    MetaData,
    SQLColumnExpression,
    Text,
    func,
    literal,
    select,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import DeclarativeBase, Session
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator, TypeEngine

_NAMING = {
    "ix": "ix_%(column_0_N_label)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class UtcDateTime(TypeDecorator[datetime]):
    """A timezone-aware UTC datetime on every database. Naive datetimes are refused."""

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        return dialect.type_descriptor(DateTime(timezone=dialect.name != "sqlite"))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a naive datetime can't be stored; use kernel.sdk.utc_now()")
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def result_processor(self, dialect: Dialect, coltype: Any) -> Any:
        """On SQLite, parse the stored text in one call: lists load a time for each row."""
        if dialect.name != "sqlite":
            return super().result_processor(dialect, coltype)
        return _from_text

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.astimezone(UTC)


def _from_text(stored: str | None) -> datetime | None:
    if stored is None:
        return None
    moment = datetime.fromisoformat(stored)
    # Times that were not written by SQLAlchemy may name their zone.
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def json_type() -> JSON:
    """JSON on SQLite, JSONB on PostgreSQL."""
    return JSON().with_variant(JSONB(), "postgresql")


def utc_now() -> datetime:
    """The time now by this machine's clock, timezone-aware, in UTC."""
    return datetime.fromtimestamp(time.time(), UTC)


def shared_now(session: Session) -> datetime:
    """The time now by the clock that all processes on this database share, whatever their machines say.

    PostgreSQL's clock; processes on SQLite share a machine and its clock.
    """
    if session.get_bind().dialect.name == "sqlite":
        return utc_now()
    moment: datetime = session.execute(select(func.clock_timestamp())).scalar_one()
    return moment.astimezone(UTC)


def shared_moment(session: Session) -> ColumnElement[datetime]:
    """The same as part of a statement, without a query of its own."""
    if session.get_bind().dialect.name == "sqlite":
        return literal(utc_now(), UtcDateTime())
    return func.clock_timestamp(type_=UtcDateTime())


def plugin_base(owner: str) -> Any:
    """A declarative base for `owner`. It refuses tables whose names don't start with ``<owner>_``.

    Foreign keys may point at the owner's own tables and, by column object, at the kernel's. Typed as Any
    because type checkers can't follow a base class made by a function.
    """
    prefix = f"{owner}_"

    class Base(DeclarativeBase):
        metadata = MetaData(naming_convention=_NAMING)

        def __init_subclass__(cls, **kwargs: Any) -> None:
            name = getattr(cls, "__tablename__", None)
            if name is not None and not name.startswith(prefix):
                raise TypeError(f"table '{name}' of '{owner}' must be called '{prefix}…'")
            super().__init_subclass__(**kwargs)

    return Base


@dataclass(frozen=True)
class Tables:
    """An owner's tables: the declarative base and the folder with its numbered Alembic revisions.

    `derived` names tables that migrations create in addition to the models, such as a full-text index that
    differs between databases. A name also covers tables that start with it and ``_``. Backups leave them out;
    after a restore, `derive(session)` fills them again from the owner's other rows.
    """

    base: type[DeclarativeBase]
    migrations: Path
    derived: tuple[str, ...] = ()
    derive: Callable[[Session], None] | None = None


class Ids(TypeDecorator[Sequence[int] | Sequence[str]]):
    """Ids of the type `of`: an array on PostgreSQL, JSON on SQLite."""

    impl = Text
    cache_ok = True

    def __init__(self, of: type[TypeEngine[Any]] = Integer) -> None:
        super().__init__()
        self.of = of

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        return dialect.type_descriptor(Text() if dialect.name == "sqlite" else ARRAY(self.of))

    def process_bind_param(self, value: Sequence[int] | Sequence[str] | None, dialect: Dialect) -> Any:
        return json.dumps(list(value or ())) if dialect.name == "sqlite" else list(value or ())


class Among(FunctionElement[bool]):
    """Whether a column is one of the bound ids. Unlike `in_`, the statement's text doesn't depend on them."""

    name = "among"
    type = Boolean()
    inherit_cache = True

    def __init__(self, column: SQLColumnExpression[Any], ids: BindParameter[Any]) -> None:
        super().__init__(column, ids)

    def self_group(self, against: Any = None) -> Among:
        """Unchanged: SQLAlchemy's `(…) = 1` for SQLite would use no index."""
        return self


@compiles(Among)
def _array(element: Among, compiler: Any, **options: Any) -> str:
    column, ids = (compiler.process(clause, **options) for clause in element.clauses)
    return f"({column} = ANY ({ids}))"


@compiles(Among, "sqlite")
def _json(element: Among, compiler: Any, **options: Any) -> str:
    column, ids = (compiler.process(clause, **options) for clause in element.clauses)
    return f"({column} IN (SELECT value FROM json_each({ids})))"
