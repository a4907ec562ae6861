"""The option `--filter`: which documents a question or a search is about."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeAlias

import typer

Filters: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        help="Only documents with this value of a field, as FIELD=VALUE, or a filter as JSON. Several "
        "must all match.",
        metavar="FILTER",
    ),
]


AnyTime: TypeAlias = Annotated[
    bool,
    typer.Option("--any-time", help="Use documents of any time, also those that no longer apply."),
]


AsOf: TypeAlias = Annotated[
    str | None,
    typer.Option("--as-of", help="Use the versions that were current at the end of a day.", metavar="DATE"),
]


def add_times(body: dict[str, Any], as_of: str | None, *, any_time: bool) -> None:
    """Add what the options about time say to a question's body."""
    if any_time:
        body["use_period"] = False
    if as_of is not None:
        body["as_of"] = as_of


def filter_of(options: Sequence[str] | None) -> dict[str, Any] | None:
    """The filter that the options stand for; None without any. Raises BadParameter."""
    parts = [_part(one) for one in options or ()]
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else {"type": "and", "filters": parts}


def period_line(period: Mapping[str, Any] | None) -> str | None:
    """Which documents an answer is from, for a terminal; None if from all."""
    if period is None:
        return None
    if not period["applied"]:
        return f"nothing in {period['label']}: all documents were searched"
    return f"from {period['label']}; --any-time searches all"


def _part(written: str) -> dict[str, Any]:
    if written.lstrip().startswith("{"):
        try:
            condition: dict[str, Any] = json.loads(written)
        except ValueError as error:
            raise typer.BadParameter(f"not valid JSON: {error}", param_hint="--filter") from None
        return condition
    name, equals, value = written.partition("=")
    if not equals or not name.strip():
        raise typer.BadParameter(
            f"'{written}' must be FIELD=VALUE, or a filter as JSON", param_hint="--filter"
        )
    return {name.strip(): _value(value.strip())}


def _value(written: str) -> Any:
    """A number, true or false as what it is; in quotation marks or otherwise a text."""
    try:
        value = json.loads(written)
    except ValueError:
        return written
    return value if isinstance(value, bool | int | float | str) else written
