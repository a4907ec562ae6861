"""The requirements for every source, as tests: a source's tests subclass `SourceConformance`.

The subclass provides the fixture `world`, an empty place of that kind (`SourceWorld`). What a run does with a
listing is done here in memory (`Mirror`), and compared with what the place holds. pytest-asyncio in auto mode
runs the tests.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from typing import ClassVar

import pytest

from builtin_plugins.sources.protocol import (
    CredentialRefused,
    DocumentSource,
    GoneItem,
    ItemFault,
    ListingEnd,
    ListingIncomplete,
    SourceItem,
    SourceThrottled,
    SourceUnreachable,
)

_FEW, _SHARE = 5, 0.3
_WAITS = 10

Blocks = AbstractAsyncContextManager[object]


class SourceWorld(ABC):
    """A real place with documents that a test changes, and the source that reads it.

    The methods that return a block make something go wrong within it; None means that this can't happen to
    sources of this kind.
    """

    @abstractmethod
    def opened(self) -> AbstractAsyncContextManager[DocumentSource]:
        """The source, as a run opens it."""

    @abstractmethod
    async def put(self, path: str, content: bytes) -> None:
        """Write a document, new or not."""

    @abstractmethod
    async def remove(self, path: str) -> None:
        """Delete one."""

    @abstractmethod
    async def move(self, old: str, new: str) -> None:
        """Move one, as people do there."""

    async def settle(self) -> None:  # noqa: B027
        """Make what was changed since visible to readers, such as by a commit."""

    def cut_off(self) -> Blocks | None:
        """Listings break off in the middle."""
        return None

    def shortened(self) -> Blocks | None:
        """Listings leave out nearly everything, and look whole."""
        return None

    def throttled(self) -> Blocks | None:
        """The place asks to wait every now and then, for no time at all or a second."""
        return None

    def expired(self) -> Blocks | None:
        """The credential is no longer good."""
        return None

    def repeated(self) -> Blocks | None:
        """Pages of a listing overlap."""
        return None

    def skewed(self) -> Blocks | None:
        """Documents written now are dated in the past, before those that are there."""
        return None


class MuchMissing(Exception):
    """A listing left out so much that a person would be asked."""


class Mirror:
    """What a run makes of a source, in memory: contents by path, and what was fetched in the last step."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}
        self.fetched: list[str] = []
        self._items: dict[str, SourceItem] = {}
        self._cursor: str | None = None

    async def step(self, world: SourceWorld) -> None:
        """Get in step. Raises SourceFault, MuchMissing; waits if the source asks for it."""
        self.fetched = []
        for _ in range(_WAITS):
            try:
                async with world.opened() as source:
                    return await self._step(source)
            except SourceThrottled as throttled:
                await asyncio.sleep(throttled.seconds)
        raise SourceUnreachable("it asked to wait again and again")

    async def _step(self, source: DocumentSource) -> None:
        listed: dict[str, SourceItem] = {}
        gone, end = set[str](), None
        async with aclosing(source.documents(self._cursor)) as listing:
            async for entry in listing:
                assert end is None, "something follows the end of the listing"
                if isinstance(entry, ListingEnd):
                    end = entry
                elif isinstance(entry, GoneItem):
                    gone.add(entry.identity)
                else:
                    listed[entry.identity] = entry
        if end is None:
            raise ListingIncomplete("the listing has no end")
        if not end.only_changes:
            gone = self._items.keys() - listed.keys()
        gone &= self._items.keys()
        if len(gone) > max(_FEW, _SHARE * len(self._items)):
            raise MuchMissing
        for item in listed.values():
            await self._take(source, item)
        for identity in gone:
            self.contents.pop(self._items.pop(identity).path, None)
        self._cursor = end.cursor

    async def _take(self, source: DocumentSource, item: SourceItem) -> None:
        previous = self._items.get(item.identity)
        if previous is not None and previous.etag == item.etag:
            self.contents[item.path] = self.contents.pop(previous.path)
        elif item.unavailable is None:
            content = await read_item(source, item)
            self.fetched.append(item.path)
            if previous is not None:
                self.contents.pop(previous.path, None)
            self.contents[item.path] = content
        if item.unavailable is None:
            self._items[item.identity] = item


async def read_item(source: DocumentSource, item: SourceItem) -> bytes:
    """The whole content of an item."""
    async with source.content(item) as pieces:
        return b"".join([piece async for piece in pieces])


@asynccontextmanager
async def _during(blocks: Blocks | None) -> AsyncIterator[None]:
    if blocks is None:
        pytest.skip("this can't happen to sources of this kind")
    async with blocks:
        yield


class SourceConformance:
    """See the module. `MANY` is how many documents the largest test has."""

    MANY: ClassVar[int] = 1_000

    async def start(self, world: SourceWorld, count: int = 10) -> tuple[Mirror, dict[str, bytes]]:
        """A mirror in step with this many documents."""
        contents = {f"folder {at % 3}/{at}.txt": f"text {at}".encode() for at in range(count)}
        for path, content in contents.items():
            await world.put(path, content)
        await world.settle()
        mirror = Mirror()
        await mirror.step(world)
        assert mirror.contents == contents
        return mirror, contents

    async def test_an_empty_place_has_an_end(self, world: SourceWorld) -> None:
        """It is listed whole, and holds nothing."""
        await world.settle()
        mirror = Mirror()
        await mirror.step(world)
        assert mirror.contents == {}

    async def test_nothing_is_fetched_twice(self, world: SourceWorld) -> None:
        """Etags stay the same as long as the content does."""
        mirror, contents = await self.start(world)
        for _ in range(2):
            await mirror.step(world)
            assert (mirror.contents, mirror.fetched) == (contents, [])

    async def test_new_and_changed(self, world: SourceWorld) -> None:
        """Exactly what is new or has changed is fetched, even if neither size nor name differ."""
        mirror, contents = await self.start(world)
        changes = {"folder 1/1.txt": b"TEXT 1", "new.txt": b"new", "deep/er/still.txt": b"deep"}
        for path, content in changes.items():
            await world.put(path, content)
        await world.settle()
        await mirror.step(world)
        assert mirror.contents == contents | changes
        assert sorted(mirror.fetched) == sorted(changes)

    async def test_moved(self, world: SourceWorld) -> None:
        """It is at its new place, and nowhere else."""
        mirror, contents = await self.start(world)
        for old, new in (("folder 0/0.txt", "folder 0/zero.txt"), ("folder 1/1.txt", "elsewhere/1.txt")):
            await world.move(old, new)
            contents[new] = contents.pop(old)
        await world.settle()
        await mirror.step(world)
        assert mirror.contents == contents

    async def test_deleted(self, world: SourceWorld) -> None:
        """It is gone, and what has taken its path since is something else."""
        mirror, contents = await self.start(world)
        await world.remove("folder 0/0.txt")
        await world.remove("folder 1/1.txt")
        await world.settle()
        await mirror.step(world)
        gone = {"folder 0/0.txt", "folder 1/1.txt"}
        assert mirror.contents == {path: text for path, text in contents.items() if path not in gone}
        await world.put("folder 1/1.txt", b"another")
        await world.settle()
        await mirror.step(world)
        assert mirror.contents["folder 1/1.txt"] == b"another"

    async def test_a_listing_cut_off_in_the_middle(self, world: SourceWorld) -> None:
        """It is a fault, never a shorter listing."""
        mirror, contents = await self.start(world)
        async with _during(world.cut_off()):
            with pytest.raises(SourceUnreachable):
                await mirror.step(world)
        assert mirror.contents == contents
        await mirror.step(world)
        assert mirror.contents == contents

    async def test_a_listing_that_lies_about_its_end(self, world: SourceWorld) -> None:
        """Much that is missing is not taken for deleted."""
        mirror, contents = await self.start(world, 20)
        async with _during(world.shortened()):
            with pytest.raises((SourceUnreachable, MuchMissing)):
                await mirror.step(world)
        await mirror.step(world)
        assert mirror.contents == contents

    async def test_throttled(self, world: SourceWorld) -> None:
        """It says for how long to wait, and goes on afterwards."""
        mirror, contents = await self.start(world)
        await world.put("new.txt", b"new")
        await world.settle()
        async with _during(world.throttled()):
            await mirror.step(world)
        assert mirror.contents == contents | {"new.txt": b"new"}

    async def test_credential_expired(self, world: SourceWorld) -> None:
        """It is told apart from other faults."""
        mirror, contents = await self.start(world)
        async with _during(world.expired()):
            with pytest.raises(CredentialRefused):
                await mirror.step(world)
        await mirror.step(world)
        assert mirror.contents == contents

    async def test_clock_skew(self, world: SourceWorld) -> None:
        """What is new is found by its content, whatever its date says."""
        mirror, contents = await self.start(world)
        async with _during(world.skewed()):
            await world.put("folder 0/0.txt", b"later than it looks")
            await world.settle()
        await mirror.step(world)
        assert mirror.contents == contents | {"folder 0/0.txt": b"later than it looks"}

    async def test_two_pages_with_the_same_item(self, world: SourceWorld) -> None:
        """It is one."""
        mirror, contents = await self.start(world)
        async with _during(world.repeated()):
            fresh = Mirror()
            await fresh.step(world)
            assert (fresh.contents, len(fresh.fetched)) == (contents, len(contents))
            await mirror.step(world)
            assert mirror.fetched == []

    async def test_an_item_that_vanishes(self, world: SourceWorld) -> None:
        """Only this one fails."""
        await self.start(world, 3)
        async with world.opened() as source:
            listed = [one async for one in source.documents(None) if isinstance(one, SourceItem)]
            [first] = [one for one in listed if one.path == "folder 0/0.txt"]
            [other] = [one for one in listed if one.path == "folder 1/1.txt"]
            await world.remove("folder 0/0.txt")
            await world.settle()
            with suppress(ItemFault):  # but it may read what it has listed
                assert await read_item(source, first) == b"text 0"
            assert await read_item(source, other) == b"text 1"

    async def test_names_of_all_kinds(self, world: SourceWorld) -> None:
        """Spaces, signs that addresses treat specially, other scripts."""
        names = ["a b.txt", "100%.txt", "what?.txt", "no#1.txt", "a+b&c=d.txt", "grüße/日本語.txt", "x'y.txt"]
        contents = {name: f"text of {at}".encode() for at, name in enumerate(names)}
        for path, content in contents.items():
            await world.put(path, content)
        await world.settle()
        mirror = Mirror()
        await mirror.step(world)
        assert mirror.contents == contents
        await world.remove("100%.txt")
        await world.settle()
        await mirror.step(world)
        assert mirror.contents == {path: text for path, text in contents.items() if path != "100%.txt"}

    async def test_large_and_empty(self, world: SourceWorld) -> None:
        """Every byte arrives, and none is one as well."""
        large = bytes(range(256)) * 20_000
        await world.put("large.bin", large)
        await world.put("empty.txt", b"")
        await world.settle()
        mirror = Mirror()
        await mirror.step(world)
        assert mirror.contents == {"large.bin": large, "empty.txt": b""}

    async def test_many_items(self, world: SourceWorld) -> None:
        """All of them, and none of them again."""
        mirror, contents = await self.start(world, self.MANY)
        await mirror.step(world)
        assert (mirror.fetched, len(mirror.contents)) == ([], len(contents))
