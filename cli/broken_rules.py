"""The API's validation errors in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PLACES = ("body", "query", "path", "header")
_RULES = {
    "missing": "is required",
    "string_too_short": "must have at least {min_length} {characters}",
    "string_too_long": "must have at most {max_length} {characters}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
}


def in_words(detail: Any) -> Any:
    """The `detail` of an error response: a list of errors becomes one line, anything else stays as it is."""
    return "; ".join(map(plainly, detail)) if isinstance(detail, list) else detail


def plainly(item: Mapping[str, Any]) -> str:
    """One validation error, with the name of its field and without the value."""
    place = [str(part) for part in item.get("loc", ())]
    field = ".".join(place[1:] if place[:1] and place[0] in _PLACES else place)
    return f"{field}: {_text(item)}" if field else _text(item)


def _text(item: Mapping[str, Any]) -> str:
    message = str(item.get("msg", item)).removeprefix("Value error, ")
    bounds = dict(item.get("ctx") or {})
    length = bounds.get("min_length", bounds.get("max_length"))
    try:
        words = _RULES[str(item.get("type"))]
        return words.format(**bounds, characters="character" if length == 1 else "characters")
    except KeyError:
        return message
