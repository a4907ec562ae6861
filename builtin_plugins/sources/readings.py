"""Rights of a source that has no short way to say whether they have changed: all are read, and compared."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from builtin_plugins.sources.protocol import (
    SourceDirectory,
    SourceGrant,
    SourceGroup,
    SourceItem,
    SourcePerson,
)


@dataclass
class RightsReading:
    """What one reading found: `grants` by identity, without items whose rights can't be read.

    `people` are described as far as the source does; `names` and `members` are those of groups.
    """

    grants: dict[str, SourceGrant] = field(default_factory=dict)
    people: dict[str, SourcePerson] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    members: dict[str, frozenset[str]] = field(default_factory=dict)

    def withdraw(self, people: Collection[str]) -> None:
        """Take people out of all grants and groups, such as those who may no longer sign in there."""
        for identity, grant in self.grants.items():
            self.grants[identity] = replace(grant, people=[it for it in grant.people if it not in people])
        self.members = {one: members.difference(people) for one, members in self.members.items()}

    def directory(self) -> SourceDirectory:
        """The people and groups that are named, and the people in the groups."""
        named = {person for grant in self.grants.values() for person in grant.people}
        groups = {group for grant in self.grants.values() for group in grant.groups} | self.members.keys()
        people = named.union(*self.members.values())
        return SourceDirectory(
            [self.people.get(person) or SourcePerson(person) for person in sorted(people)],
            [
                SourceGroup(group, self.names.get(group, group), sorted(self.members.get(group, ())))
                for group in sorted(groups)
            ],
        )

    def mark(self) -> str:
        """A text that differs after every change."""
        grants = [
            [identity, grant.everybody, sorted(grant.people), sorted(grant.groups)]
            for identity, grant in sorted(self.grants.items())
        ]
        directory = self.directory()
        people = [[one.id, one.name, one.email] for one in directory.people]
        groups = [[one.id, one.name, list(one.people)] for one in directory.groups]
        return hashlib.sha256(json.dumps([grants, people, groups]).encode()).hexdigest()


class WholeReading(ABC):
    """The part of a GuardedSource that is about rights, by readings of all of them."""

    _reading: RightsReading | None = None

    @abstractmethod
    async def read_rights(self) -> RightsReading:
        """All rights, now. Raises SourceFault."""

    async def rights_mark(self) -> str | None:
        """A digest of a new reading. Raises SourceFault."""
        self._reading = await self.read_rights()
        return self._reading.mark()

    async def directory(self) -> SourceDirectory:
        """All whom the rights name. Raises SourceFault."""
        return (await self._current_reading()).directory()

    async def grants(self, items: Sequence[SourceItem]) -> Mapping[str, SourceGrant]:
        """By the reading of the mark or of the directory. Raises SourceFault."""
        grants = (await self._current_reading()).grants
        return {one.identity: grants[one.identity] for one in items if one.identity in grants}

    async def _current_reading(self) -> RightsReading:
        if self._reading is None:
            self._reading = await self.read_rights()
        return self._reading
