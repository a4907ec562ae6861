"""A set of ids as one bound value: the statement's text and plan are the same for any number of ids."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import BindParameter, Boolean, Integer, SQLColumnExpression, Text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator, TypeEngine


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
