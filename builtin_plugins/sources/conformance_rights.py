"""The requirements for sources with permissions of their own, as tests, besides those for every source.

A source's tests subclass `GuardedConformance` and provide the fixture `world`, a `GuardedWorld`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final, cast

import pytest

from builtin_plugins.sources.conformance import Blocks, SourceConformance, SourceWorld, read_item
from builtin_plugins.sources.protocol import (
    GuardedSource,
    ItemFault,
    SourceDirectory,
    SourceFault,
    SourceGrant,
    SourceItem,
)

EVERYBODY: Final = frozenset({"*"})
"""In place of the people who may read an item."""


class GuardedWorld(SourceWorld):
    """A place whose documents not everybody may read.

    There are the people and groups of `people` and `groups`, by the ids that the source gives them.
    """

    people: tuple[str, str, str]
    groups: tuple[str, str]

    @abstractmethod
    async def grant(self, path: str, grant: SourceGrant) -> None:
        """Let these people and groups read a document, and nobody else."""

    @abstractmethod
    async def set_group(self, group: str, people: tuple[str, ...]) -> None:
        """Let these people be in a group, and nobody else."""

    async def nest(self, group: str, inner: str) -> bool:
        """Put a group into another; returns False if there is no such thing there."""
        return False

    def rights_cut_off(self) -> Blocks | None:
        """People and groups, or permissions, can be read only in part."""
        return None


async def read_readers(world: GuardedWorld) -> dict[str, frozenset[str]]:
    """The people who may read each document, by path: `EVERYBODY`, or their ids. Raises SourceFault."""
    async with world.opened() as opened:
        source = cast("GuardedSource", opened)
        await source.rights_mark()
        directory = await source.directory()
        items = [item async for item in source.documents(None) if isinstance(item, SourceItem)]
        grants = await source.grants(items)
        for item in items:
            if item.grant is not None:
                listing_readers = _readers(directory, item.grant)
                grant_readers = _readers(directory, grants.get(item.identity, SourceGrant()))
                assert listing_readers == grant_readers, f"the listing and the grant of {item.path} differ"
        return {item.path: _readers(directory, grants.get(item.identity, SourceGrant())) for item in items}


def _readers(directory: SourceDirectory, grant: SourceGrant) -> frozenset[str]:
    if grant.everybody:
        return EVERYBODY
    groups = {one.id: one for one in directory.groups}
    person_ids = {one.id for one in directory.people}
    people, visited_groups, left = set(grant.people), set[str](), list(grant.groups)
    while left:
        group_id = left.pop()
        if group_id in groups and group_id not in visited_groups:
            visited_groups.add(group_id)
            people |= set(groups[group_id].people)
            left += groups[group_id].groups
    return frozenset(people & person_ids)


@asynccontextmanager
async def _failing(blocks: Blocks | None) -> AsyncIterator[None]:
    if blocks is None:
        pytest.skip("this can't happen to sources of this kind")
    async with blocks:
        yield


class GuardedConformance(SourceConformance):
    """See the module."""

    async def _put(self, world: GuardedWorld, *grants: SourceGrant) -> list[str]:
        """One document for each grant; returns their paths."""
        paths = [f"folder/{number}.txt" for number in range(len(grants))]
        for path, grant in zip(paths, grants, strict=True):
            await world.put(path, path.encode())
            await world.grant(path, grant)
        await world.settle()
        return paths

    async def test_permission_given_and_taken(self, world: GuardedWorld) -> None:
        """Whoever is named may read, and nobody else; once that is taken, no longer."""
        ann, bob, _ = world.people
        first, second = await self._put(world, SourceGrant([ann]), SourceGrant([ann, bob]))
        assert await read_readers(world) == {first: {ann}, second: {ann, bob}}
        await world.grant(second, SourceGrant([bob]))
        await world.settle()
        assert await read_readers(world) == {first: {ann}, second: {bob}}

    async def test_a_group_is_the_people_in_it_now(self, world: GuardedWorld) -> None:
        """Changed, it is so for all documents at once."""
        (ann, bob, cleo), (staff, board) = world.people, world.groups
        await world.set_group(staff, (ann, bob))
        await world.set_group(board, (cleo,))
        first, second = await self._put(world, SourceGrant([], [staff]), SourceGrant([cleo], [board]))
        assert await read_readers(world) == {first: {ann, bob}, second: {cleo}}
        await world.set_group(staff, (bob, cleo))
        await world.set_group(board, ())
        await world.settle()
        assert await read_readers(world) == {first: {bob, cleo}, second: {cleo}}

    async def test_groups_within_groups(self, world: GuardedWorld) -> None:
        """Also in a circle."""
        (ann, bob, _), (outer, inner) = world.people, world.groups
        await world.set_group(outer, (ann,))
        await world.set_group(inner, (bob,))
        if not await world.nest(outer, inner):
            pytest.skip("there are no groups within groups")
        await world.nest(inner, outer)
        [path] = await self._put(world, SourceGrant([], [outer]))
        assert await read_readers(world) == {path: {ann, bob}}

    async def test_everybody_and_nobody(self, world: GuardedWorld) -> None:
        """One is not taken for the other."""
        ann = world.people[0]
        first, second = await self._put(world, SourceGrant(everybody=True), SourceGrant())
        assert await read_readers(world) == {first: EVERYBODY, second: set()}
        await world.grant(first, SourceGrant([ann]))
        await world.settle()
        assert await read_readers(world) == {first: {ann}, second: set()}

    async def test_what_is_gone_is_open_to_nobody(self, world: GuardedWorld) -> None:
        """Asked for the permissions of what has gone since, a source leaves it out."""
        first, second = await self._put(world, SourceGrant(everybody=True), SourceGrant(everybody=True))
        async with world.opened() as opened:
            source = cast("GuardedSource", opened)
            items = [one async for one in source.documents(None) if isinstance(one, SourceItem)]
            await world.remove(first)
            await world.settle()
        async with world.opened() as opened:
            grants = await cast("GuardedSource", opened).grants(items)
        left = {one.path for one in items if grants.get(one.identity, SourceGrant()) != SourceGrant()}
        assert left == {second}

    async def test_new_content_has_no_earlier_readers(self, world: GuardedWorld) -> None:
        """Content and permission that change together after both were read: the new content is not given."""
        ann, bob, _ = world.people
        [path] = await self._put(world, SourceGrant([ann]))
        async with world.opened() as opened:
            source = cast("GuardedSource", opened)
            [item] = [one async for one in source.documents(None) if isinstance(one, SourceItem)]
            await source.grants([item])
            await world.put(path, b"For others alone.")
            await world.grant(path, SourceGrant([bob]))
            await world.settle()
            with suppress(ItemFault):
                assert await read_item(source, item) == path.encode()
        assert await read_readers(world) == {path: {bob}}

    async def test_a_mark_differs_after_every_change(self, world: GuardedWorld) -> None:
        """And not without one, or nothing would be spared; a source that has none says None."""
        (ann, bob, _), (staff, _) = world.people, world.groups
        [path] = await self._put(world, SourceGrant([ann], [staff]))
        marks = [await _mark(world), await _mark(world)]
        if marks[0] is None:
            pytest.skip("the source has no mark")
        assert marks[0] == marks[1]
        await world.grant(path, SourceGrant([bob], [staff]))
        await world.settle()
        marks.append(await _mark(world))
        await world.set_group(staff, (bob,))
        await world.settle()
        marks.append(await _mark(world))
        assert len(set(marks)) == 3

    async def test_permissions_that_cannot_be_read(self, world: GuardedWorld) -> None:
        """They are a fault, never fewer or more of them."""
        [path] = await self._put(world, SourceGrant([world.people[0]]))
        async with _failing(world.rights_cut_off()):
            with pytest.raises(SourceFault):
                await read_readers(world)
        assert await read_readers(world) == {path: {world.people[0]}}


async def _mark(world: GuardedWorld) -> str | None:
    async with world.opened() as opened:
        return await cast("GuardedSource", opened).rights_mark()
