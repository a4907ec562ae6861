"""The front matter of Markdown: fields in YAML between two lines of dashes, before the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

import yaml

from builtin_plugins.documents.properties import PropertyName, listed, note_property
from builtin_plugins.documents.text.encoding import read_lines

_FENCE: Final = "---"
_ENDS: Final = (_FENCE, "...")
_MOST_LINES: Final = 100
_MOST_ITEMS: Final = 100
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
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})


def note_front_matter(path: Path) -> None:
    """Note what a file's front matter says; one that can't be read is only text."""
    with path.open("rb") as file:
        if not file.read(8).lstrip(b"\xef\xbb\xbf").startswith(_FENCE.encode()):
            return
    lines = list(islice(read_lines(path, _LONGEST_LINE), _MOST_LINES + 2))
    end = front_matter_end(lines)
    if end is None:
        return
    try:
        # Texts, lists and mappings only: what tags and merged mappings make can be anything, of any size.
        fields = yaml.load("\n".join(lines[1:end]), Loader=yaml.BaseLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return
    for key, value in fields.items() if isinstance(fields, dict) else ():
        name = _FIELDS.get(str(key).lower())
        if name is not None:
            note_property(name, *_texts(name, value))


def front_matter_end(lines: Sequence[str]) -> int | None:
    """The place of the line that ends the front matter; None without any."""
    if not lines or lines[0].rstrip().lstrip("\ufeff") != _FENCE:
        return None
    ends = (at for at, line in enumerate(lines[: _MOST_LINES + 2]) if at and line.rstrip() in _ENDS)
    return next(ends, None)


def _texts(name: PropertyName, value: Any) -> list[str]:
    """The texts of a field: itself, or the items of its list; what is inside these is left out."""
    items = value[:_MOST_ITEMS] if isinstance(value, list) else [value]
    texts = [one for one in items if isinstance(one, str) and one not in _NULLS]
    return [item for one in texts for item in listed(one)] if name in _LISTS else texts
