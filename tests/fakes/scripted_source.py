"""A source whose listing and faults a test decides, and which remembers what was fetched from it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import BaseModel, ConfigDict

from builtin_plugins.sources.api import (
    DocumentSource,
    ItemVanished,
    Listing,
    ListingEnd,
    SourceDirectory,
    SourceGrant,
    SourceGroup,
    SourceItem,
    SourceKind,
    SourcePerson,
    SourceSetup,
)
from kernel.sdk import Plugin, hookimpl


class ScriptedSettings(BaseModel):
    """Which of the test's shelves it is."""

    model_config = ConfigDict(extra="forbid")

    shelf: str


@dataclass
class Shelf:
    """What is at the source: content by path.

    `identities` are those of paths that have another; `pages` lists more than there is; `listing` and
    `opening` may raise a fault when this many items were listed, or this path is opened; `cut` ends the
    listing after so many items, without its end. With a `cursor`, a listing that begins there has no changes.
    `grants` are by path; `reading_rights` may raise a fault when it is called with what is read.
    `changes` wakes whoever watches; `watching` may raise a fault when somebody begins to.
    """

    contents: dict[str, bytes] = field(default_factory=dict)
    identities: dict[str, str] = field(default_factory=dict)
    modified: dict[str, datetime] = field(default_factory=dict)
    pages: list[str] = field(default_factory=list)
    listing: Callable[[int], object] = lambda _: None
    opening: Callable[[str], object] = lambda _: None
    cut: int | None = None
    cursor: str | None = None
    fingerprints: bool = True
    fetched: list[str] = field(default_factory=list)
    people: dict[str, SourcePerson] = field(default_factory=dict)
    groups: dict[str, SourceGroup] = field(default_factory=dict)
    grants: dict[str, SourceGrant] = field(default_factory=dict)
    grants_listed: bool = False
    mark: str | None = None
    reading_rights: Callable[[str], object] = lambda _: None
    changes: asyncio.Event = field(default_factory=asyncio.Event)
    watching: Callable[[], object] = lambda: None
    secrets: list[str | None] = field(default_factory=list)


class ShelfSource:
    """The shelf as a source."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    async def documents(self, since: str | None) -> Listing:
        shelf = self._shelf
        if shelf.cursor is not None and since == shelf.cursor:
            yield ListingEnd(shelf.cursor, only_changes=True)
            return
        for number, path in enumerate([*shelf.contents, *shelf.pages]):
            shelf.listing(number)
            if number == shelf.cut:
                return
            digest = hashlib.sha256(shelf.contents[path]).hexdigest()
            yield SourceItem(
                identity=shelf.identities.get(path, path),
                etag=digest,
                path=path,
                size=len(shelf.contents[path]),
                modified=shelf.modified.get(path),
                link=f"https://shelf.example.org/{path}",
                details={"shelf": "first"},
                fingerprint=digest if shelf.fingerprints else None,
                grant=shelf.grants.get(path, SourceGrant()) if shelf.grants_listed else None,
            )
        shelf.listing(len(shelf.contents))
        yield ListingEnd(shelf.cursor)

    @asynccontextmanager
    async def content(self, item: SourceItem) -> AsyncIterator[AsyncIterator[bytes]]:
        shelf = self._shelf
        shelf.opening(item.path)
        known = [path for path in shelf.contents if shelf.identities.get(path, path) == item.identity]
        if not known:
            raise ItemVanished("It is gone")
        shelf.fetched.append(item.path)

        async def pieces() -> AsyncIterator[bytes]:
            yield shelf.contents[known[0]]

        yield pieces()


class GuardedShelfSource(ShelfSource):
    """The same with permissions."""

    async def rights_mark(self) -> str | None:
        self._shelf.reading_rights("mark")
        return self._shelf.mark

    async def directory(self) -> SourceDirectory:
        self._shelf.reading_rights("directory")
        return SourceDirectory(list(self._shelf.people.values()), list(self._shelf.groups.values()))

    async def grants(self, items: Sequence[SourceItem]) -> Mapping[str, SourceGrant]:
        shelf = self._shelf
        shelf.reading_rights("grants")
        paths = {shelf.identities.get(path, path): path for path in shelf.contents}
        listed = [one.identity for one in items if one.identity in paths]
        return {one: shelf.grants[paths[one]] for one in listed if paths[one] in shelf.grants}


@dataclass
class ScriptedSources(Plugin):
    """Brings the kind `scripted`, and one with permissions of its own."""

    name = "scripted_sources"
    shelves: dict[str, Shelf] = field(default_factory=dict)

    @hookimpl
    def register_sources(self) -> Sequence[SourceKind]:
        return [
            SourceKind(
                "scripted",
                "Scripted",
                ScriptedSettings,
                self._open,
                secret="Password",
                watch=self._watch,
            ),
            SourceKind(
                "secretive",
                "Secretive",
                ScriptedSettings,
                self._open_guarded,
                secret="Password",
                guarded=True,
            ),
            SourceKind("scripted", "Again", ScriptedSettings, self._open),
        ]

    @asynccontextmanager
    async def _open(self, setup: SourceSetup) -> AsyncIterator[DocumentSource]:
        shelf = self.shelves[setup.settings.model_dump()["shelf"]]
        shelf.secrets.append(None if setup.secret is None else setup.secret.get_secret_value())
        yield ShelfSource(shelf)

    async def _watch(self, setup: SourceSetup) -> AsyncGenerator[None]:
        shelf = self.shelves[setup.settings.model_dump()["shelf"]]
        shelf.watching()
        while True:
            shelf.changes.clear()
            yield
            await shelf.changes.wait()

    @asynccontextmanager
    async def _open_guarded(self, setup: SourceSetup) -> AsyncIterator[DocumentSource]:
        yield GuardedShelfSource(self.shelves[setup.settings.model_dump()["shelf"]])
