"""The numbers of headings and list items in OpenDocument files (ODF 1.3 part 3, 16.30), which lack them."""

from __future__ import annotations

from collections.abc import Mapping
from string import ascii_lowercase
from typing import Final, NamedTuple

from builtin_plugins.documents.office.docx_numbering import number_in, written_number

_MOST_LEVELS: Final = 10
_MOST_STYLES: Final = 20  # that are based on each other
_LONGEST_TEXT: Final = 100  # before or after a number
_FORMS: Final = {
    "1": "decimal",
    "a": "lowerLetter",
    "A": "upperLetter",
    "i": "lowerRoman",
    "I": "upperRoman",
}
_LEVELS: Final = frozenset({"outline-level-style", "list-level-style-number", "list-level-style-bullet"})
_OUTLINE: Final = "\x00"  # the list of all headings


class _Level(NamedTuple):
    form: str
    repeats: bool  # letters after z: aa, bb instead of aa, ab
    before: str
    after: str
    levels: int  # levels, with those above
    start: int
    is_bullet: bool


class _Item:
    """A list item; its first paragraph has its number."""

    def __init__(self, start: int | None, *, is_numbered: bool) -> None:
        self.start = start
        self.is_numbered = is_numbered


class OdtNumbering:
    """Numbers the paragraphs of a document in their order, from the elements before them.

    A slide's lists go on from each other within a text box, whatever their styles are called, until a
    paragraph on the same level is numbered otherwise.
    """

    def __init__(self, *, of_slides: bool = False) -> None:
        self._of_slides = of_slides
        self._forms: dict[int, _Level | None] = {}  # of the last paragraphs in a text box
        self._levels: dict[str, dict[int, _Level]] = {}  # by list style
        self._style = ""
        self._list_of: dict[str, tuple[str | None, str]] = {}  # list style and parent, by paragraph style
        self._lists: list[str] = []  # the styles of the open lists
        self._items: list[_Item | None] = []
        self._counts: dict[int, int] = {}  # of the current list
        self._by_id: dict[str, dict[int, int]] = {}
        self._by_style: dict[str, dict[int, int]] = {}
        self._outline: dict[int, int] = {}

    def learn(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take an element that says how something is numbered."""
        if name in ("list-style", "outline-style"):
            self._style = _OUTLINE if name == "outline-style" else attribute(attributes, "name")
            self._levels[self._style] = {}
        elif name in _LEVELS:
            self._levels.setdefault(self._style, {})[_number(attributes, "level", 1)] = _level(
                name, attributes
            )
        elif name == "style":
            own = next((value for key, value in attributes.items() if key.endswith("}list-style-name")), None)
            parent = attribute(attributes, "parent-style-name")
            self._list_of[attribute(attributes, "name")] = own, parent

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element opens that may be a list or one of its items."""
        if name == "list":
            self._open(attributes)
        elif name == "text-box" and self._of_slides:
            self._counts, self._forms = {}, {}
        elif name in ("list-item", "list-header"):
            start = _number(attributes, "start-value", -1)
            self._items[-1:] = [_Item(start if start >= 0 else None, is_numbered=name == "list-item")]

    def end(self, name: str) -> None:
        """An element closes."""
        if name == "list" and self._lists:
            self._lists.pop()
            self._items.pop()

    def label(self, name: str, attributes: Mapping[str, str]) -> str:
        """The number before a paragraph or heading that opens; empty if it has none, or a bullet."""
        own = attribute(attributes, "style-name")
        item = self._items[-1] if self._items else None
        style = (self._lists[-1] or self._list_style(own)) if self._lists else ""
        if name == "h" and not self._levels.get(style):
            return self._heading(attributes)
        if item is None or not item.is_numbered:
            return ""
        item.is_numbered = False
        levels, at = self._levels.get(style, {}), len(self._lists)
        if self._of_slides and self._forms.get(at) != levels.get(at):
            self._counts.pop(at, None)
        self._forms[at] = levels.get(at)
        return _written(self._counts, levels, at, item.start)

    def _open(self, attributes: Mapping[str, str]) -> None:
        style = attribute(attributes, "style-name") or (self._lists[-1] if self._lists else "")
        if not self._lists and not self._of_slides:
            earlier = None
            if other := attribute(attributes, "continue-list"):
                earlier = self._by_id.get(other)
            elif attribute(attributes, "continue-numbering") == "true":
                earlier = self._by_style.get(style)
            self._counts = {} if earlier is None else earlier
            self._by_id[attribute(attributes, "id")] = self._by_style[style] = self._counts
        self._lists.append(style)
        self._items.append(None)

    def _heading(self, attributes: Mapping[str, str]) -> str:
        if attribute(attributes, "is-list-header") == "true":
            return ""
        start = _number(attributes, "start-value", 1)
        restarts = attribute(attributes, "restart-numbering") == "true"
        level = _number(attributes, "outline-level", 1)
        return _written(self._outline, self._levels.get(_OUTLINE, {}), level, start if restarts else None)

    def _list_style(self, style: str) -> str:
        for _ in range(_MOST_STYLES):
            list_style, parent = self._list_of.get(style, ("", ""))
            if list_style is not None:
                return list_style
            style = parent
        return ""


def attribute(attributes: Mapping[str, str], own: str) -> str:
    """The value of an attribute, whatever its namespace."""
    return next((value for name, value in attributes.items() if name.endswith("}" + own)), "")


def _number(attributes: Mapping[str, str], name: str, default: int) -> int:
    return number_in(attribute(attributes, name), default)


def _level(name: str, attributes: Mapping[str, str]) -> _Level:
    return _Level(
        _FORMS.get(attribute(attributes, "num-format"), "none"),
        attribute(attributes, "num-letter-sync") == "true",
        attribute(attributes, "num-prefix")[:_LONGEST_TEXT],
        attribute(attributes, "num-suffix")[:_LONGEST_TEXT],
        min(_number(attributes, "display-levels", 1), _MOST_LEVELS),
        _number(attributes, "start-value", 1),
        name == "list-level-style-bullet",
    )


def _written(counts: dict[int, int], levels: Mapping[int, _Level], at: int, start: int | None) -> str:
    """Count a paragraph on a level, and return its number."""
    level = levels.get(at)
    if level is None or at > _MOST_LEVELS:
        return ""
    counts[at] = counts.get(at, level.start - 1) + 1 if start is None else start
    for below in [one for one in counts if one > at]:
        del counts[below]
    if level.is_bullet:
        return ""
    numbered_levels = [one for one in range(at - level.levels + 1, at + 1) if one in levels]
    for above in numbered_levels[:-1]:  # levels that were left out count as begun
        counts.setdefault(above, levels[above].start)
    numbers = [_number_text(counts[one], levels[one]) for one in numbered_levels]
    return (level.before + ".".join(filter(None, numbers)) + level.after).strip()


def _number_text(count: int, level: _Level) -> str:
    if not level.form.endswith("Letter") or level.repeats:
        return written_number(count, level.form)
    text = ""
    while count > 0:
        count, at = divmod(count - 1, len(ascii_lowercase))
        text = ascii_lowercase[at] + text
    return text.upper() if level.form == "upperLetter" else text
