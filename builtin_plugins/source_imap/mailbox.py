"""A mailbox: each message is a document, which its account alone may read."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import Message
from email.parser import BytesParser
from functools import partial
from typing import Final, TypeVar

from pydantic import SecretStr

from builtin_plugins.source_imap.connection import MailConnection
from builtin_plugins.source_imap.folders import selected_folders
from builtin_plugins.source_imap.numbers import as_ranges, from_ranges
from builtin_plugins.source_imap.replies import MailFolder, MailMessage
from builtin_plugins.source_imap.settings import ImapSettings
from builtin_plugins.source_imap.threads import MailThreads, MessageLinks
from builtin_plugins.source_imap.watching import watch_messages
from builtin_plugins.sources.api import (
    GoneItem,
    ItemVanished,
    Listing,
    ListingEnd,
    ListingIncomplete,
    SourceDirectory,
    SourceGrant,
    SourceItem,
    SourceKind,
    SourceMisplaced,
    SourcePerson,
    SourceSetup,
    SourceUnreachable,
)
from kernel.sdk import OutgoingError, Platform, split_list
from kernel.sdk.outgoing import CheckedResolver, Destinations

_BATCH: Final = 200
_PIECE: Final = 1024 * 1024
_LONGEST_NAME: Final = 120
_LONGEST_HEADER: Final = 2_000
_ID: Final = re.compile(r"<[^<>\s]+>")
Answer = TypeVar("Answer")
FolderStates = dict[str, tuple[int, set[int]]]
"""By folder, as the server spells it, its UIDVALIDITY and the UIDs of its messages."""


class MailboxSource:
    """Messages are known by account, folder, UIDVALIDITY and UID, and never change.

    A moved one keeps its document. Nothing that was read for another account is recognized.
    """

    def __init__(self, connection: MailConnection, settings: ImapSettings, password: str) -> None:
        self._connection = connection
        self._settings = settings
        self._password = password
        self._turn = asyncio.Lock()
        self._grant = SourceGrant(people=(settings.owner,))

    async def documents(self, since: str | None) -> Listing:
        """All messages, or what has come and gone since the last listing. Raises SourceFault."""
        previous, current = _states_of(since), FolderStates()
        folders = selected_folders(await self._ask(self._connection.folders), self._settings)
        threads = MailThreads(partial(self._look_up, folders), is_update=since is not None)
        for folder in folders:
            validity, numbers = await self._ask(partial(self._numbers, folder))
            before, had = previous.get(folder.quoted, (validity, set[int]()))
            current[folder.quoted] = (validity, numbers)
            fresh = sorted(numbers - had if before == validity else numbers)
            for start in range(0, len(fresh), _BATCH):
                batch = fresh[start : start + _BATCH]
                messages = await self._ask(partial(self._fetch, folder, validity, batch))
                for message in messages:
                    headers = _headers_of(message)
                    thread = await threads.thread_of(_links_of(headers))
                    yield self._item(folder, validity, message, headers, thread)
                numbers.difference_update(set(batch) - {one.uid for one in messages})  # asked for again
        for name, (validity, had) in previous.items():
            now, numbers = current.get(name, (validity, set[int]()))
            for uid in sorted(had - numbers if now == validity else had):
                yield GoneItem(self._identity(name, validity, uid))
        yield ListingEnd(_cursor_of(current), only_changes=since is not None)

    def _numbers(self, folder: MailFolder) -> tuple[int, set[int]]:
        self._connection.leave()
        validity = self._connection.enter(folder.quoted)
        return validity, self._connection.numbers()

    def _fetch(self, folder: MailFolder, validity: int, numbers: list[int]) -> list[MailMessage]:
        if self._connection.enter(folder.quoted) != validity:
            raise ListingIncomplete(f"The mail server numbers the mails in {folder.name} in another way now")
        return self._connection.messages(numbers)

    async def _look_up(self, folders: Sequence[MailFolder], message_id: str) -> MessageLinks | None:
        """A message by its id, from any of these folders."""
        if not (message_id.isascii() and message_id.isprintable()):
            return None
        for folder in folders:
            for message in await self._ask(partial(self._find, folder, message_id)):
                links = _links_of(_headers_of(message))
                if links.own == message_id:
                    return links
        return None

    def _find(self, folder: MailFolder, message_id: str) -> list[MailMessage]:
        self._connection.enter(folder.quoted)
        return self._connection.named(message_id)

    def _item(
        self, folder: MailFolder, validity: int, message: MailMessage, headers: Message, thread: str
    ) -> SourceItem:
        subject, own = _header(headers, "Subject"), _header(headers, "Message-ID")
        day = f"{message.received:%Y-%m-%d} " if message.received else ""
        details = {
            "thread": thread,
            "message_id": own,
            "sender": _header(headers, "From"),
        }
        return SourceItem(
            identity=self._identity(folder.quoted, validity, message.uid),
            etag=f"{validity} {message.uid}",
            path=f"{folder.name}/{day}{subject.replace('/', ' ')[:_LONGEST_NAME]}.eml",
            size=message.size,
            modified=message.received,
            media_type="message/rfc822",
            details={name: value for name, value in details.items() if value},
            fingerprint=f"{self._settings.owner} {own} {message.size}" if own else None,
            grant=self._grant,
        )

    @asynccontextmanager
    async def content(self, item: SourceItem) -> AsyncIterator[AsyncIterator[bytes]]:
        """A message with its attachments. Raises ItemVanished, SourceFault."""
        _, name, validity, uid = json.loads(item.identity)
        first = await self._ask(partial(self._read, name, validity, uid, 0))
        if first is None:
            raise ItemVanished("It was deleted or moved since it was listed")

        async def pieces() -> AsyncIterator[bytes]:
            piece: bytes | None = first
            start = 0
            while piece:
                yield piece
                start += len(piece)
                if len(piece) < _PIECE:
                    break
                piece = await self._ask(partial(self._read, name, validity, uid, start))

        yield pieces()

    def _read(self, name: str, validity: int, uid: int, start: int) -> bytes | None:
        if self._connection.enter(name) != validity:
            return None
        return self._connection.piece(uid, start, _PIECE)

    async def rights_mark(self) -> str | None:
        """Rights never change: the settings name the account."""
        return self._settings.owner

    async def directory(self) -> SourceDirectory:
        """The one account."""
        owner = self._settings.owner
        return SourceDirectory(people=(SourcePerson(owner, name=owner, email=owner),))

    async def grants(self, items: Sequence[SourceItem]) -> Mapping[str, SourceGrant]:
        """The account may read all that was read for it, whoever the settings named then."""
        owner = self._settings.owner
        return {item.identity: self._grant for item in items if json.loads(item.identity)[0] == owner}

    async def _ask(self, ask: Callable[[], Answer]) -> Answer:
        """Call the server in a thread; one call at a time."""
        async with self._turn:
            await asyncio.to_thread(self._connection.sign_in, self._password)
            return await asyncio.to_thread(ask)

    def _identity(self, folder: str, validity: int, uid: int) -> str:
        return json.dumps([self._settings.owner, folder, validity, uid])


def _headers_of(message: MailMessage) -> Message:
    return BytesParser().parsebytes(message.headers, headersonly=True)


def _links_of(headers: Message) -> MessageLinks:
    references = tuple(_header(headers, "References").split())
    answers = _ID.search(_header(headers, "In-Reply-To"))
    return MessageLinks(_header(headers, "Message-ID"), references, answers[0] if answers else "")


def _header(headers: Message, name: str) -> str:
    """The beginning of a header in Unicode; senders write what they like."""
    text = str(headers.get(name, ""))[:_LONGEST_HEADER]
    with suppress(HeaderParseError, LookupError, ValueError):
        text = str(make_header(decode_header(text)))
    return " ".join(text.encode(errors="replace").decode().split())


def _states_of(since: str | None) -> FolderStates:
    rows = {} if since is None else json.loads(since)
    return {name: (validity, from_ranges(ranges)) for name, (validity, ranges) in rows.items()}


def _cursor_of(states: FolderStates) -> str:
    return json.dumps({name: [validity, as_ranges(numbers)] for name, (validity, numbers) in states.items()})


async def _permitted(platform: Platform, host: str, port: int) -> list[str]:
    """The addresses of the host that calls may reach. Raises SourceMisplaced, SourceUnreachable."""
    destinations = Destinations(allowed=split_list(platform.settings.outgoing_allowed))
    resolver = CheckedResolver(destinations)
    try:
        addresses = await resolver.resolve(host, port)
    except OutgoingError as error:
        raise SourceMisplaced(str(error)) from None
    except OSError:
        raise SourceUnreachable(f"{host} can't be found") from None
    finally:
        await resolver.close()
    if not addresses:
        raise SourceUnreachable(f"{host} can't be found")
    return [one["host"] for one in addresses]


@asynccontextmanager
async def open_mailbox(setup: SourceSetup) -> AsyncIterator[MailboxSource]:
    """Open a source of this kind; it connects when it is first asked. Raises SourceFault."""
    connection, settings, password = await _connection_of(setup)
    try:
        yield MailboxSource(connection, settings, password)
    finally:
        await asyncio.to_thread(connection.close)


async def watch_mailbox(setup: SourceSetup) -> AsyncGenerator[None]:
    """Changes of such a source. Raises SourceFault."""
    async with aclosing(watch_messages(*await _connection_of(setup))) as changes:
        async for _ in changes:
            yield


async def _connection_of(setup: SourceSetup) -> tuple[MailConnection, ImapSettings, str]:
    settings = ImapSettings.model_validate(setup.settings.model_dump())
    addresses = await _permitted(setup.platform, settings.host, settings.port)
    password = (setup.secret or SecretStr("")).get_secret_value()
    return MailConnection(settings, addresses), settings, password


IMAP: Final = SourceKind(
    "imap",
    "Mailbox (IMAP)",
    ImapSettings,
    open_mailbox,
    secret="Password",
    guarded=True,
    personal=True,
    watch=watch_mailbox,
)
