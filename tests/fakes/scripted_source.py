"""A source whose listing and faults a test decides, and which remembers what was fetched from it."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import BaseModel, ConfigDict

from builtin_plugins.sources.api import (
    DocumentSource,
    ItemVanished,
    Listing,
    ListingEnd,
    SourceItem,
    SourceKind,
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


@dataclass
class ScriptedSources(Plugin):
    """Brings the kind `scripted`, and one with permissions of its own."""

    name = "scripted_sources"
    shelves: dict[str, Shelf] = field(default_factory=dict)

    @hookimpl
    def register_sources(self) -> Sequence[SourceKind]:
        return [
            SourceKind("scripted", "Scripted", ScriptedSettings, self._open, secret="Password"),
            SourceKind("secretive", "Secretive", ScriptedSettings, self._open, guarded=True),
            SourceKind("scripted", "Again", ScriptedSettings, self._open),
        ]

    @asynccontextmanager
    async def _open(self, setup: SourceSetup) -> AsyncIterator[DocumentSource]:
        shelf = self.shelves[setup.settings.model_dump()["shelf"]]
        shelf.secrets.append(None if setup.secret is None else setup.secret.get_secret_value())
        yield ShelfSource(shelf)
