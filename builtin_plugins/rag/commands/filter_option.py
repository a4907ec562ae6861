"""The option `--filter`: which documents a question or a search is about."""

from __future__ import annotations

import json
from collections.abc import Sequence
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


def filter_of(given: Sequence[str] | None) -> dict[str, Any] | None:
    """The filter that the options stand for; None without any. Raises BadParameter."""
    parts = [_part(one) for one in given or ()]
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else {"type": "and", "filters": parts}


def _part(written: str) -> dict[str, Any]:
    if written.lstrip().startswith("{"):
        try:
            made: dict[str, Any] = json.loads(written)
        except ValueError as error:
            raise typer.BadParameter(f"not valid JSON: {error}", param_hint="--filter") from None
        return made
    name, found, value = written.partition("=")
    if not found or not name.strip():
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
