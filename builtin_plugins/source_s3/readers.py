"""Who may read objects, by the beginning of their names: lines of a source's settings."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

from builtin_plugins.sources.api import SourceDirectory, SourceGrant, SourceGroup, SourcePerson

_EVERYBODY: Final = "*"
_GROUP: Final = "@"
_ADDRESS: Final = re.compile(r"[^\s@,=:]+@[^\s@,=:]+")
_GROUP_NAME: Final = re.compile(r"[^\s,=:]+")


class PrefixReaders:
    """What such lines say: `rules` are ``prefix = readers``, `groups` are ``name = members``.

    Readers and members are e-mail addresses and ``@name``, separated by commas; ``*`` is everybody. The
    longest prefix that fits decides alone. Raises ValueError, which says what is wrong with a line.
    """

    def __init__(self, rules: Sequence[str], groups: Sequence[str]) -> None:
        self._grants = {prefix: _grant(names, line) for prefix, names, line in _lines(rules)}
        self._members = {name: _grant(names, line) for name, names, line in _lines(groups)}
        for name, members in self._members.items():
            if not _GROUP_NAME.fullmatch(name) or members.everybody:
                raise ValueError(f"'{name}' must be the name of a group, and addresses or groups its members")
        self._lengths = sorted({len(prefix) for prefix in self._grants}, reverse=True)

    def of(self, key: str) -> SourceGrant:
        """Who may read an object; nobody if no prefix fits."""
        fitting = (self._grants.get(key[:length]) for length in self._lengths if length <= len(key))
        return next((grant for grant in fitting if grant is not None), SourceGrant())

    def directory(self) -> SourceDirectory:
        """All people and groups that are named."""
        named = [*self._grants.values(), *self._members.values()]
        people = sorted({one for grant in named for one in grant.people})
        groups = sorted({one for grant in named for one in grant.groups} | self._members.keys())
        return SourceDirectory(
            [SourcePerson(one, one, one) for one in people],
            [SourceGroup(one, one, *self._in_group(one)) for one in groups],
        )

    def _in_group(self, name: str) -> tuple[Sequence[str], Sequence[str]]:
        members = self._members.get(name, SourceGrant())
        return members.people, members.groups

    def mark(self) -> str:
        """A text that differs after every change."""
        grants = [
            [name, grant.everybody, sorted(grant.people), sorted(grant.groups)]
            for table in (self._grants, self._members)
            for name, grant in sorted(table.items())
        ]
        return hashlib.sha256(json.dumps([len(self._grants), grants]).encode()).hexdigest()


def _lines(lines: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Both sides of each line, and the line."""
    left_sides = set[str]()
    for line in lines:
        left, sign, right = line.rpartition("=")
        if not sign:
            raise ValueError(f"'{line}' has no '='")
        if left.strip() in left_sides:
            raise ValueError(f"'{left.strip()}' is there twice")
        left_sides.add(left.strip())
        yield left.strip(), right, line


def _grant(names: str, line: str) -> SourceGrant:
    readers = [one.strip() for one in names.split(",") if one.strip()]
    people = tuple(one for one in readers if _ADDRESS.fullmatch(one))
    groups = tuple(one.removeprefix(_GROUP) for one in readers if one.startswith(_GROUP))
    wrong = [one for one in groups if not _GROUP_NAME.fullmatch(one)]
    if wrong or len(people) + len(groups) + readers.count(_EVERYBODY) != len(readers):
        raise ValueError(f"'{line}': expected e-mail addresses, @group or * after '='")
    return SourceGrant(people, groups, _EVERYBODY in readers)
