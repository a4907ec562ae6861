"""A folder whose files are read by whoever may read them on the server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from builtin_plugins.source_folder.access_rules import AccessRules, FileReaders
from builtin_plugins.source_folder.folder import FolderSource, etag_of
from builtin_plugins.source_folder.name_service import NameService, ServerGroup, ServerUser
from builtin_plugins.sources.api import (
    ItemFault,
    SourceDirectory,
    SourceGrant,
    SourceGroup,
    SourceItem,
    SourcePerson,
    SourceUnreachable,
)

_FEW: Final = 5

Entry = TypeVar("Entry", ServerUser, ServerGroup)


class GuardedFolderSource(FolderSource):
    """People and groups are those of the server, known by their names; root gets no special rights.

    `email_domain` makes addresses of names.
    """

    def __init__(self, root: Path, email_domain: str | None, names: NameService) -> None:
        super().__init__(root)
        self._domain = email_domain
        self._names = names
        self._reading: _Reading | None = None

    async def rights_mark(self) -> str | None:
        """None: a change of permissions leaves no trace that is found faster than by looking at all files."""
        self._reading = None
        return None

    async def directory(self) -> SourceDirectory:
        """The users and groups that the server's name service lists."""
        return await asyncio.to_thread(self._directory)

    def _directory(self) -> SourceDirectory:
        reading = self._reading = _Reading(self._root, self._names)
        people = [
            SourcePerson(name, reading.full_names[name] or name, self._domain and f"{name}@{self._domain}")
            for name in reading.users.values()
        ]
        groups = [
            SourceGroup(name, name, sorted(reading.users[one] for one in reading.members(number)))
            for number, name in reading.groups.items()
        ]
        return SourceDirectory(people, groups)

    async def grants(self, items: Sequence[SourceItem]) -> Mapping[str, SourceGrant]:
        """By the files and the folders above them, up to the server's root. Raises SourceUnreachable."""
        return await asyncio.to_thread(self._grants, items)

    def check(self, item: SourceItem, number: int) -> None:
        """Only what was listed: its permissions were read after that, and those of later content were not."""
        if etag_of(os.fstat(number)) != item.etag:
            raise ItemFault("It was changed since it was listed")

    def _grants(self, items: Sequence[SourceItem]) -> Mapping[str, SourceGrant]:
        reading = self._reading = self._reading or _Reading(self._root, self._names)
        grants = {}
        for item in items:
            with suppress(OSError, RuntimeError, ValueError):  # then nobody may read it
                grants[item.identity] = reading.grant(reading.rules.readers_of(item.identity))
        if len(items) > _FEW and not grants:
            raise SourceUnreachable("None of the files can be found")
        return grants


def _by_name(entries: Sequence[Entry]) -> Sequence[Entry]:
    """The first of each name, as the server looks names up: further ones are somebody else."""
    return list({one.name: one for one in reversed(entries)}.values())[::-1]


class _Reading:
    """What is read once for all files: names by number, groups by user, rules of folders."""

    def __init__(self, root: Path, names: NameService) -> None:
        users, groups = _by_name(names.users()), _by_name(names.groups())
        self.users = {one.number: one.name for one in reversed(users)}
        self.groups = {one.number: one.name for one in reversed(groups)}
        self.full_names = {one.name: one.full_name for one in users}
        numbers = {name: number for number, name in self.users.items()}
        self._groups_of = {one.number: {one.group} for one in reversed(users)}
        for group in groups:
            for name in group.members:
                if name in numbers:
                    self._groups_of[numbers[name]].add(group.number)
        self.rules = AccessRules(root, self._groups_of)

    def members(self, group: int) -> list[int]:
        """The users in a group."""
        return [user for user, groups in self._groups_of.items() if group in groups]

    def grant(self, readers: FileReaders) -> SourceGrant:
        """Numbers without a name are nobody's."""
        people = sorted(self.users[one] for one in readers.users if one in self.users)
        groups = sorted(self.groups[one] for one in readers.groups if one in self.groups)
        return SourceGrant(people, groups, readers.everybody)
