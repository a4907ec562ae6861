"""Who may read pages: whoever sees the space, of those to whom the page and all above it are restricted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from builtin_plugins.source_confluence.editions import Edition
from builtin_plugins.source_confluence.settings import ConfluenceSettings
from builtin_plugins.source_confluence.wiki import WikiContent, WikiSource, is_whole
from builtin_plugins.sources.api import (
    RouteAbsent,
    RouteRefused,
    SourceDirectory,
    SourceGrant,
    SourceGroup,
    SourceItem,
    SourcePerson,
)

_EVERYBODY = SourceGrant(everybody=True)


@dataclass
class WikiRights:
    """What one reading found. `chains` are for each content what decides besides the space, from the top
    down, itself included; `restrictions` of these, None where they can't be read.
    """

    spaces: dict[str, SourceGrant] = field(default_factory=dict)
    chains: dict[str, tuple[str, Sequence[str]]] = field(default_factory=dict)
    attached: dict[str, str] = field(default_factory=dict)
    restrictions: dict[str, SourceGrant | None] = field(default_factory=dict)
    people: dict[str, SourcePerson] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    members: dict[str, frozenset[str]] = field(default_factory=dict)

    def of(self, identity: str) -> SourceGrant | None:
        """Who may read a content or an attachment; None if it isn't there, or that can't be read."""
        space, chain = self.chains.get(self.attached.get(identity, identity), ("", ()))
        limits = [self.spaces.get(space), *(self.restrictions.get(one) for one in chain)]
        known = [one for one in limits if one is not None]
        return self.common(known) if len(known) == len(limits) else None

    def common(self, limits: Iterable[SourceGrant]) -> SourceGrant:
        """Who is in all of these: people by themselves where the groups differ."""
        bounds = [one for one in limits if not one.everybody]
        if len(bounds) < 2:
            return bounds[0] if bounds else _EVERYBODY
        groups = set(bounds[0].groups).intersection(*(one.groups for one in bounds))
        people = [{*one.people}.union(*(self.members[group] for group in one.groups)) for one in bounds]
        return SourceGrant(sorted(set.intersection(*people)), sorted(groups))

    def all_grants(self) -> list[SourceGrant]:
        """Every permission and restriction."""
        return [*self.spaces.values(), *(one for one in self.restrictions.values() if one is not None)]

    def directory(self) -> SourceDirectory:
        """The people and groups that these name, and the people in the groups."""
        named = {person for one in self.all_grants() for person in one.people}
        ids = sorted(named.union(*self.members.values()))
        people = [self.people.get(one) or SourcePerson(one) for one in ids]
        groups = [
            SourceGroup(one, self.names.get(one, one), sorted(who)) for one, who in self.members.items()
        ]
        return SourceDirectory(people, groups)

    def mark(self) -> str:
        """A text that differs after every change."""
        grants = [[one, grant and _said(grant)] for one in sorted(self.chains) for grant in [self.of(one)]]
        people = [[one.id, one.name, one.email] for one in self.directory().people]
        groups = sorted([one, sorted(who)] for one, who in self.members.items())
        said = [grants, sorted(self.attached.items()), people, groups]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()


class GuardedWiki(WikiSource):
    """One reading of the rights lists the spaces once, without bodies, and the people of each group."""

    def __init__(self, edition: Edition, settings: ConfluenceSettings) -> None:
        super().__init__(edition, settings)
        self.is_exact = True
        self._spaces = settings.spaces
        self._rights: WikiRights | None = None

    async def rights_mark(self) -> str | None:
        """Of all permissions, restrictions and groups. Raises SourceFault."""
        self._rights = await self._read()
        return self._rights.mark()

    async def directory(self) -> SourceDirectory:
        """All whom permissions and restrictions name. Raises SourceFault."""
        return (await self._known()).directory()

    async def grants(self, items: Sequence[SourceItem]) -> Mapping[str, SourceGrant]:
        """As it was when the mark or the directory was asked for. Raises SourceFault."""
        rights = await self._known()
        found = {one.identity: rights.of(one.identity) for one in items}
        return {identity: grant for identity, grant in found.items() if grant is not None}

    async def _known(self) -> WikiRights:
        if self._rights is None:
            self._rights = await self._read()
        return self._rights

    async def _read(self) -> WikiRights:
        rights = WikiRights()
        for space in await self.edition.spaces(self._spaces):
            rights.spaces[space.key] = await self.edition.space_readers(space)
            async with aclosing(self.contents(space)) as contents:
                async for content in contents:
                    await self._note(rights, content)
        for chain in list(rights.chains.values()):
            for above in chain[1]:
                if above not in rights.restrictions:  # a folder, or a page of which nothing else is listed
                    rights.restrictions[above] = await self._asked(rights, above)
        for group in sorted({group for one in rights.all_grants() for group in one.groups}):
            rights.members[group] = await self._members(rights, group)
        unknown = {person for one in rights.all_grants() for person in one.people} - rights.people.keys()
        rights.people |= {one.id: one for one in await self.edition.people(sorted(unknown))}
        return rights

    async def _note(self, rights: WikiRights, content: WikiContent) -> None:
        above = [] if content.kind == "blogpost" else [str(one["id"]) for one in content.ancestors]
        rights.chains[content.id] = (content.space.key, [*above, content.id])
        rights.attached |= {str(one["id"]): content.id for one in await self.attachments(content)}
        listed = _part(_part(content.entry, "restrictions"), "read")
        parts = _part(listed, "restrictions")
        if _are_lists(parts) and all(is_whole(parts[kind]) for kind in ("user", "group")):
            rights.restrictions[content.id] = self._grant(rights, [parts])
        else:
            rights.restrictions[content.id] = await self._asked(rights, content.id)

    async def _asked(self, rights: WikiRights, content: str) -> SourceGrant | None:
        """The restrictions of one content, all pages of them; None if they can't be read."""
        url, limit, start, pages = self.edition.restriction(content), 0, 0, list[Mapping[str, Any]]()
        while True:
            try:
                answer = await self.edition.api.read(url.update_query(start=str(start)))
            except RouteRefused:
                return None
            parts = _part(answer, "restrictions")
            if not _are_lists(parts):
                return None
            pages.append(parts)
            if all(is_whole(parts[kind]) for kind in ("user", "group")):
                return self._grant(rights, pages)
            limit = max(len(parts[kind]["results"]) for kind in ("user", "group"))
            if not limit:
                return self._grant(rights, pages)
            start += limit

    def _grant(self, rights: WikiRights, pages: Sequence[Mapping[str, Any]]) -> SourceGrant:
        """Everybody if nobody is named; whoever is unknown at Confluence is nobody."""
        users = [one for page in pages for one in page["user"]["results"]]
        named = [one for page in pages for one in page["group"]["results"]]
        if not users and not named:
            return _EVERYBODY
        people = [person for one in users if (person := self.edition.person(one)) is not None]
        groups = [found for one in named if (found := self.edition.group(one))[0]]
        rights.people |= {one.id: one for one in people}
        rights.names |= dict(groups)
        return SourceGrant(sorted({one.id for one in people}), sorted({one for one, _ in groups}))

    async def _members(self, rights: WikiRights, group: str) -> frozenset[str]:
        """The people in a group; nobody if the account may not know."""
        try:
            found = await self.edition.all_of(self.edition.members(group))
        except (RouteAbsent, RouteRefused):
            return frozenset()
        people = [person for one in found if (person := self.edition.person(one)) is not None]
        rights.people |= {one.id: one for one in people}
        return frozenset(one.id for one in people)


def _part(entry: Any, name: str) -> Mapping[str, Any]:
    found = entry.get(name) if isinstance(entry, dict) else None
    return found if isinstance(found, dict) else {}


def _are_lists(parts: Mapping[str, Any]) -> bool:
    return all(isinstance(_part(parts, kind).get("results"), list) for kind in ("user", "group"))


def _said(grant: SourceGrant) -> list[object]:
    return [grant.everybody, list(grant.people), list(grant.groups)]
