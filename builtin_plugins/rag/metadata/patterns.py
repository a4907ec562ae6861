"""Patterns of paths, as `contracts/{year}/*.pdf`, and the parts of a path that they name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from builtin_plugins.rag.metadata.kinds import is_name, nfc

_TOKEN: Final = re.compile(r"\{([^{}]*)\}|(\*)|(\?)|([^{}*?]+)")
_MOST_WILD: Final = 8
"""Wildcards in one name: more would take long to try."""
_FOLDERS: Final = "**"


class PatternRefused(ValueError):
    """Not a pattern; the text says why."""


class _Token(NamedTuple):
    """A part of a name: a text, one character (``?``), or any (``*``), which may have a name."""

    text: str = ""
    any: bool = False
    one: bool = False
    part: str | None = None


class PathPattern:
    """A pattern. Raises PatternRefused for an invalid one."""

    def __init__(self, pattern: str) -> None:
        names = nfc(pattern).strip("/").split("/")
        if any(name in ("", ".", "..") for name in names):
            raise PatternRefused("must not have empty parts, '.' or '..' between its slashes")
        self._names = [None if name == _FOLDERS else list(_tokens(name)) for name in names]
        self.parts = [one.part for name in self._names if name for one in name if one.part is not None]
        if len(set(self.parts)) != len(self.parts):
            raise PatternRefused("names a part twice")
        if self._names.count(None) > _MOST_WILD:
            raise PatternRefused(f"must not have '**' more than {_MOST_WILD} times")

    def match(self, path: str) -> dict[str, str] | None:
        """The named parts of a path; None if it does not fit."""
        return self._match(nfc(path).split("/"), 0, 0, set())

    def _match(
        self, path: list[str], place: int, own: int, failed: set[tuple[int, int]]
    ) -> dict[str, str] | None:
        if own == len(self._names):
            return {} if place == len(path) else None
        if (place, own) in failed:
            return None
        name = self._names[own]
        if name is None:
            # The last one stands for at least one file, any other also for no folder.
            last = own == len(self._names) - 1
            starts = [len(path)] if last and place < len(path) else range(place, len(path))
            parts = next(
                (fit for start in starts if (fit := self._match(path, start, own + 1, failed)) is not None),
                None,
            )
        else:
            here = _fit(name, path[place]) if place < len(path) else None
            rest = None if here is None else self._match(path, place + 1, own + 1, failed)
            parts = None if here is None or rest is None else {**here, **rest}
        if parts is None:
            failed.add((place, own))
        return parts


def _tokens(name: str) -> Iterator[_Token]:
    if name.count("*") + name.count("{") > _MOST_WILD:
        raise PatternRefused(f"must not have more than {_MOST_WILD} wildcards in one name")
    end = 0
    for match in _TOKEN.finditer(name):
        if match.start() != end:
            break
        end = match.end()
        part, star, one, text = match.groups()
        if part is not None and not is_name(part):
            raise PatternRefused("must name its parts with letters, digits and underscores: {year}")
        yield _Token(text or "", any=part is not None or star is not None, one=one is not None, part=part)
    if end != len(name):
        raise PatternRefused("has a brace without its other one")


def _fit(tokens: list[_Token], name: str) -> Mapping[str, str] | None:
    """The named parts of one name of a path, each as short as it can be; None if it does not fit."""
    failed: set[tuple[int, int]] = set()

    def fit(number: int, start: int) -> dict[str, str] | None:
        if number == len(tokens):
            return {} if start == len(name) else None
        if (number, start) in failed:
            return None
        token, parts = tokens[number], None
        for end in _ends(token, name, start):
            rest = fit(number + 1, end)
            if rest is not None:
                parts = rest if token.part is None else {token.part: name[start:end], **rest}
                break
        if parts is None:
            failed.add((number, start))
        return parts

    return fit(0, 0)


def _ends(token: _Token, name: str, start: int) -> range | tuple[int, ...]:
    if token.any:
        return range(start + (token.part is not None), len(name) + 1)
    if token.one:
        return (start + 1,) if start < len(name) else ()
    return (start + len(token.text),) if name.startswith(token.text, start) else ()
