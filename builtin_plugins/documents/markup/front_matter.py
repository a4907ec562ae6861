"""The front matter of Markdown: fields in YAML between two lines of dashes, before the text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, Final

import yaml

from builtin_plugins.documents.properties import PropertyName, listed, note_property
from builtin_plugins.documents.text.encoding import read_lines

_FENCE: Final = "---"
_ENDS: Final = (_FENCE, "...")
_MOST_LINES: Final = 100
_LONGEST_LINE: Final = 1_000
_FIELDS: Final[Mapping[str, PropertyName]] = {
    "title": "title",
    "subject": "subject",
    "author": "author",
    "authors": "author",
    "tags": "tags",
    "keywords": "keywords",
    "lang": "language",
    "language": "language",
    "date": "created",
    "created": "created",
    "modified": "modified",
    "updated": "modified",
    "lastmod": "modified",
}
_LISTS: Final = frozenset({"tags", "keywords"})


def note_front_matter(path: Path) -> None:
    """Note what a file's front matter says; one that can't be read is only text."""
    with path.open("rb") as file:
        if not file.read(8).lstrip(b"\xef\xbb\xbf").startswith(_FENCE.encode()):
            return
    lines: list[str] = []
    for number, line in enumerate(read_lines(path, _LONGEST_LINE)):
        written = line.rstrip()
        if number == 0 and written.lstrip("\ufeff") != _FENCE:
            return
        if number and written in _ENDS:
            break
        if number > _MOST_LINES:
            return
        lines += [line] if number else []
    else:
        return
    try:
        found = yaml.safe_load("\n".join(lines))
    except (yaml.YAMLError, ValueError, RecursionError):
        return
    for key, value in found.items() if isinstance(found, dict) else ():
        name = _FIELDS.get(str(key).lower())
        if name is not None:
            note_property(name, *_texts(name, value))


def _texts(name: PropertyName, value: Any) -> list[str]:
    if isinstance(value, list):
        return [one for item in value[:100] for one in _texts(name, item) if not isinstance(item, list)]
    if isinstance(value, date):
        return [value.isoformat()]
    if isinstance(value, str):
        return listed(value) if name in _LISTS else [value]
    return [str(value)] if isinstance(value, int | float) else []
