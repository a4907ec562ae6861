"""What a source is: where documents live, listed and opened by a plugin of its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeAlias

from pydantic import BaseModel, SecretStr

from kernel.sdk import Platform


@dataclass(frozen=True, slots=True)
class SourcePerson:
    """A person at the source, under the id by which grants and groups name them.

    `email` is an address that the source has verified; one that people enter themselves is none. `issuer` and
    `subject` are those of the identity provider through which they sign in there.
    """

    id: str
    name: str = ""
    email: str | None = None
    issuer: str | None = None
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class SourceGroup:
    """A group at the source: the ids of the people and of the groups that are in it."""

    id: str
    name: str = ""
    people: Sequence[str] = ()
    groups: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class SourceDirectory:
    """The people and groups at a source, all of them."""

    people: Sequence[SourcePerson] = ()
    groups: Sequence[SourceGroup] = ()


@dataclass(frozen=True, slots=True)
class SourceGrant:
    """Who may read an item: people and groups by id; `everybody`, also people who are unknown there."""

    people: Sequence[str] = ()
    groups: Sequence[str] = ()
    everybody: bool = False


@dataclass(frozen=True, slots=True)
class SourceItem:
    """A document at its source, as a listing names it.

    `identity` stays the same as long as it is the same document there, `etag` changes whenever its content
    does. `path` is where it is, with slashes; `link` opens the original in a browser. `fingerprint` is that
    of its content: an item that is gone and a new one with the same fingerprint are one that was moved.
    `unavailable` says why it can't be opened, if the listing shows that already. `grant` says who may read
    it, if the listing of a guarded source does; otherwise, it is asked for.
    """

    identity: str
    etag: str
    path: str
    size: int | None = None
    modified: datetime | None = None
    media_type: str | None = None
    link: str | None = None
    details: Mapping[str, str] = field(default_factory=dict)
    fingerprint: str | None = None
    unavailable: str | None = None
    grant: SourceGrant | None = None

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rstrip("/").rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class GoneItem:
    """An item that is no longer at the source: only in a listing of changes."""

    identity: str


@dataclass(frozen=True, slots=True)
class ListingEnd:
    """The end of a listing. One without it was cut off, and nothing is deleted because of it.

    `cursor` is what the next listing may begin at. `only_changes`: what it did not name has not changed, and
    what is gone was named; otherwise, what it did not name is gone.
    """

    cursor: str | None = None
    only_changes: bool = False


Listing: TypeAlias = AsyncGenerator[SourceItem | GoneItem | ListingEnd, None]


class DocumentSource(Protocol):
    """A source that is open: a folder, a repository, a server with documents."""

    def documents(self, since: str | None) -> Listing:
        """All documents, or what has changed since the cursor of an earlier listing; last, a ListingEnd.

        Naming an item twice does no harm. Raises SourceFault.
        """
        ...

    def content(self, item: SourceItem) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """The bytes of an item. Raises ItemFault for this one alone, SourceFault for all."""
        ...


class GuardedSource(DocumentSource, Protocol):
    """A source with permissions of its own.

    What holds of every answer: it is the state at the source at some moment after it was asked for; what
    can't be read is a fault or left out, never open; who is denied something there is in no grant for it.
    """

    async def rights_mark(self) -> str | None:
        """A text that differs after every change of the directory or a grant; None if it takes as long to
        find as these. Raises SourceFault.
        """
        ...

    async def directory(self) -> SourceDirectory:
        """All people and groups that grants name. Raises SourceFault, also if only a part can be read."""
        ...

    async def grants(self, items: Sequence[SourceItem]) -> Mapping[str, SourceGrant]:
        """Who may read these items, by identity; nobody may read one that is left out. Raises SourceFault.

        The items are as they were listed last, without `link`; at most 500. Their content is not read.
        """
        ...


@dataclass(frozen=True, slots=True)
class SourceSetup:
    """What a source is opened with. `source_id` names folders in which it may keep copies."""

    platform: Platform
    source_id: str
    settings: BaseModel
    secret: SecretStr | None = None


@dataclass(frozen=True, slots=True)
class SourceKind:
    """A kind of source, as a plugin registers it.

    `settings` is the model of its settings, whose schema becomes a form. `secret` says what the credential
    is, if it takes one ("Access token"). `guarded`: it has permissions of its own, always or with these
    settings, and `open` gives a GuardedSource. `personal`: what is in it is one account's, so that nobody
    says by hand who the people there are here. `open` may raise SourceFault.

    `watch` yields once it watches the source, and then whenever something may have changed there, in content
    or permissions, until it is closed; changes while nobody asks for the next one are one. It may raise
    SourceFault, also if there is no way to watch this source.
    """

    name: str
    title: str
    settings: type[BaseModel]
    open: Callable[[SourceSetup], AbstractAsyncContextManager[DocumentSource]]
    secret: str | None = None
    guarded: bool | Callable[[BaseModel], bool] = False
    personal: bool = False
    watch: Callable[[SourceSetup], AsyncGenerator[None, None]] | None = None

    def is_guarded(self, settings: BaseModel) -> bool:
        """Whether a source with these settings has permissions of its own."""
        return self.guarded(settings) if callable(self.guarded) else self.guarded


class SourceFault(Exception):
    """The source can't be listed or read. The text is shown to people: no secrets."""


class SourceUnreachable(SourceFault):
    """It does not answer, or not properly; it may later."""


class ListingIncomplete(SourceUnreachable):
    """The listing was cut off before its end."""


class SourceThrottled(SourceFault):
    """It wants to be asked again after so many seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"The source asked to wait for {seconds:g} s")
        self.seconds = max(0.0, seconds)


class CredentialRefused(SourceFault):
    """It refuses the credential: one is missing, or has expired."""


class SourceMisplaced(SourceFault):
    """The settings lead to nothing, or to something that is not allowed; asking again won't help."""


class ItemFault(Exception):
    """One item can't be read. The text is shown to people."""


class ItemVanished(ItemFault):
    """It is gone since it was listed."""


class ItemUnsuitable(ItemFault):
    """It is nothing to read; it is not tried again until it changes."""
