"""Filters in Dify's shape: the `metadata_condition` that it sends to an external knowledge base."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

from pydantic import BaseModel, Field

from builtin_plugins.rag.filters.grammar import MOST_CONDITIONS, Operator

_NUMBER: Final = re.compile(r"[+-]?\d{1,20}(\.\d{1,20})?", re.ASCII)
_YEAR: Final = 4

DifyOperator = Literal[
    "contains",
    "not contains",
    "start with",
    "end with",
    "is",
    "is not",
    "empty",
    "not empty",
    "in",
    "not in",
    "=",
    "≠",
    ">",
    "<",
    "≥",
    "≤",
    "before",
    "after",
]


class DifyCondition(BaseModel):
    """A condition of Dify's. Several names are alternatives."""

    name: str | list[str] = Field(min_length=1)
    comparison_operator: DifyOperator
    value: Any = None


class MetadataCondition(BaseModel):
    """What Dify sends as `metadata_condition`; either part may be null."""

    logical_operator: Literal["and", "or"] | None = "and"
    conditions: list[DifyCondition] | None = Field(None, max_length=MOST_CONDITIONS)


def filter_from_dify(condition: MetadataCondition | None) -> dict[str, Any] | None:
    """The same filter as clients send it, with the conditions in their order as its `filters`; None for one
    without conditions. What they can't be is noticed as in any filter.
    """
    if condition is None or not condition.conditions:
        return None
    return {
        "type": condition.logical_operator or "and",
        "filters": [_node(one) for one in condition.conditions],
    }


def _node(condition: DifyCondition) -> dict[str, Any]:
    names = [condition.name] if isinstance(condition.name, str) else condition.name
    operator, value, negated = _READ[condition.comparison_operator](condition.value)
    tests = [{"type": operator, "key": name, "value": value} for name in names]
    node = tests[0] if len(tests) == 1 else {"type": "or", "filters": tests}
    return {"type": "not", "filter": node} if negated else node


_Read: TypeAlias = tuple[Operator, Any, bool]


def _plain(operator: Operator, *, negated: bool = False) -> Callable[[Any], _Read]:
    return lambda value: (operator, value, negated)


def _numeric(operator: Operator, *, negated: bool = False) -> Callable[[Any], _Read]:
    """Dify's forms send numbers as texts."""
    return lambda value: (operator, _as_number(value), negated)


def _dated(operator: Operator) -> Callable[[Any], _Read]:
    """Seconds since 1970, perhaps as a text; four digits are a year."""
    return lambda value: (operator, value if len(str(value)) == _YEAR else _as_number(value), False)


def _among(*, negated: bool = False) -> Callable[[Any], _Read]:
    return lambda value: ("in", value if isinstance(value, list) else _parts(value), negated)


def _parts(value: Any) -> list[Any]:
    """A list that is written as one text, with commas."""
    return [one.strip() for one in value.split(",")] if isinstance(value, str) else [value]


def _presence(*, negated: bool) -> Callable[[Any], _Read]:
    return lambda _value: ("exists", True, negated)


def _as_number(value: Any) -> Any:
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        return float(value) if "." in value else int(value)
    return value


_READ: Final[Mapping[str, Callable[[Any], _Read]]] = {
    "contains": _plain("contains"),
    "not contains": _plain("contains", negated=True),
    "start with": _plain("starts_with"),
    "end with": _plain("ends_with"),
    "is": _plain("eq"),
    "is not": _plain("eq", negated=True),
    "empty": _presence(negated=True),
    "not empty": _presence(negated=False),
    "in": _among(),
    "not in": _among(negated=True),
    "=": _numeric("eq"),
    "≠": _numeric("eq", negated=True),
    ">": _numeric("gt"),
    "<": _numeric("lt"),
    "≥": _numeric("gte"),
    "≤": _numeric("lte"),
    "before": _dated("lt"),
    "after": _dated("gt"),
}
