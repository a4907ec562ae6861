"""Who may read pages: whoever sees the space, of those to whom the page and all above it are restricted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

from builtin_plugins.source_confluence.editions import Edition
from builtin_plugins.source_confluence.settings import ConfluenceSettings
from builtin_plugins.source_confluence.tree import PageTree
from builtin_plugins.source_confluence.wiki import WikiContent, WikiSource, is_whole
from builtin_plugins.sources.api import (
    ListingIncomplete,
    RightsReading,
    RouteAbsent,
    RouteRefused,
    SourceGrant,
    WholeReading,
)

_EVERYBODY: Final = SourceGrant(everybody=True)


@dataclass
class WikiLimits:
    """What decides who reads: `chains` are for each content its space, and all that it is below, itself
    included; `restrictions` those of each of these. None is what can't be read.
    """

    spaces: dict[str, SourceGrant] = field(default_factory=dict)
    chains: dict[str, tuple[str, Sequence[str] | None]] = field(default_factory=dict)
    attached: dict[str, str] = field(default_factory=dict)
    restrictions: dict[str, SourceGrant | None] = field(default_factory=dict)

    def of(self, content: str) -> list[SourceGrant] | None:
        """All that limit who reads a content; None if one of them is not known."""
        space, chain = self.chains[content]
        if chain is None:
            return None
        limits = [self.spaces[space], *(self.restrictions.get(one) for one in chain)]
        grants = [one for one in limits if one is not None]
        return grants if len(grants) == len(limits) else None

    def everything(self) -> list[SourceGrant]:
        """Every permission and restriction."""
        return [*self.spaces.values(), *(one for one in self.restrictions.values() if one is not None)]


class GuardedWiki(WholeReading, WikiSource):
    """One reading of the rights lists the spaces once, without bodies, and the people of each group."""

    def __init__(self, edition: Edition, settings: ConfluenceSettings) -> None:
        super().__init__(edition, settings)
        self.is_exact = True
        self._spaces = settings.spaces

    async def read_rights(self) -> RightsReading:
        """As it is now. Raises SourceFault."""
        limits, reading = WikiLimits(), RightsReading()
        tree = PageTree(self.edition) if self.edition.has_folders else None
        for space in await self.edition.spaces(self._spaces):
            limits.spaces[space.key] = await self.edition.space_readers(space)
            if tree is not None:
                await tree.add(space)
            async with aclosing(self.contents(space)) as contents:
                async for content in contents:
                    limits.chains[content.id] = (space.key, await _chain(content, tree))
                    await self._note(limits, reading, content)
        for above in {one for _, chain in limits.chains.values() for one in chain or ()}:
            if above not in limits.restrictions:  # a folder, or a page that is not listed
                limits.restrictions[above] = await self._read_restriction(reading, above)
        for group in sorted({group for one in limits.everything() for group in one.groups}):
            reading.members[group] = await self._members(reading, group)
        for number in limits.chains:
            grants = limits.of(number)
            if grants is not None:
                reading.grants[number] = _common(grants, reading.members)
        reading.grants |= {
            one: reading.grants[page] for one, page in limits.attached.items() if page in reading.grants
        }
        named = {person for one in limits.everything() for person in one.people}
        if self.edition.asks_about_all:
            ids = named.union(*reading.members.values())
        else:
            ids = named - reading.people.keys()
        people = {one.id: one for one in await self.edition.people(sorted(ids))}
        reading.people |= people
        reading.withdraw(ids - people.keys())
        return reading

    async def _note(self, limits: WikiLimits, reading: RightsReading, content: WikiContent) -> None:
        limits.attached |= {str(one["id"]): content.id for one in await self.attachments(content)}
        parts = _part(_part(_part(content.entry, "restrictions"), "read"), "restrictions")
        if _are_lists(parts) and _are_whole(parts):
            limits.restrictions[content.id] = self._grant(reading, [parts])
        else:
            limits.restrictions[content.id] = await self._read_restriction(reading, content.id)

    async def _read_restriction(self, reading: RightsReading, content: str) -> SourceGrant | None:
        """The restrictions of one content, all pages of them; None if they can't be read."""
        url, start, pages = self.edition.restriction(content), 0, list[Mapping[str, Any]]()
        while True:
            try:
                answer = await self.edition.api.read(url.update_query(start=str(start)))
            except RouteRefused:
                return None
            parts = _part(answer, "restrictions")
            if not _are_lists(parts):
                return None
            if pages and parts == pages[-1]:
                raise ListingIncomplete("Confluence lists the same restrictions again and again")
            pages.append(parts)
            count = max(len(parts[kind]["results"]) for kind in ("user", "group"))
            if not count or _are_whole(parts):
                return self._grant(reading, pages)
            start += count

    def _grant(self, reading: RightsReading, pages: Sequence[Mapping[str, Any]]) -> SourceGrant:
        """Everybody if nobody is named; whoever is unknown at Confluence is nobody."""
        users = [one for page in pages for one in page["user"]["results"]]
        named = [one for page in pages for one in page["group"]["results"]]
        if not users and not named:
            return _EVERYBODY
        people = [person for one in users if (person := self.edition.person(one)) is not None]
        groups = [group for one in named if (group := self.edition.group(one))[0]]
        reading.people |= {one.id: one for one in people}
        reading.names |= dict(groups)
        return SourceGrant(sorted({one.id for one in people}), sorted({one for one, _ in groups}))

    async def _members(self, reading: RightsReading, group: str) -> frozenset[str]:
        """The people in a group; nobody if the account may not know."""
        try:
            users = await self.edition.all_of(self.edition.members(group))
        except (RouteAbsent, RouteRefused):
            return frozenset()
        people = [person for one in users if (person := self.edition.person(one)) is not None]
        reading.people |= {one.id: one for one in people}
        return frozenset(one.id for one in people)


async def _chain(content: WikiContent, tree: PageTree | None) -> list[str] | None:
    """All that a content is below, by its listing or the tree, and itself; None if a level can't be read."""
    if content.kind == "blogpost":
        return [content.id]
    above = [] if tree is None else await tree.above(content.id)
    if above is None:
        return None
    return list(dict.fromkeys([*(str(one["id"]) for one in content.ancestors), *above, content.id]))


def _common(limits: Iterable[SourceGrant], members: Mapping[str, frozenset[str]]) -> SourceGrant:
    """Who is in all of these: people by themselves where the groups differ."""
    bounds = [one for one in limits if not one.everybody]
    if len(bounds) < 2:
        return bounds[0] if bounds else _EVERYBODY
    groups = set(bounds[0].groups).intersection(*(one.groups for one in bounds))
    people = [{*one.people}.union(*(members[group] for group in one.groups)) for one in bounds]
    return SourceGrant(sorted(set.intersection(*people)), sorted(groups))


def _part(entry: Any, name: str) -> Mapping[str, Any]:
    part = entry.get(name) if isinstance(entry, dict) else None
    return part if isinstance(part, dict) else {}


def _are_lists(parts: Mapping[str, Any]) -> bool:
    return all(isinstance(_part(parts, kind).get("results"), list) for kind in ("user", "group"))


def _are_whole(parts: Mapping[str, Any]) -> bool:
    return all(is_whole(parts[kind]) for kind in ("user", "group"))
