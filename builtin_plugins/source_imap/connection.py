"""A connection to an IMAP server, encrypted, at an address that calls may reach. All its calls block."""

from __future__ import annotations

import imaplib
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

from builtin_plugins.source_imap.replies import (
    MailFolder,
    MailMessage,
    ReplyBroken,
    quoted,
    read_folders,
    read_messages,
)
from builtin_plugins.source_imap.settings import ImapSettings
from builtin_plugins.sources.api import (
    CredentialRefused,
    ListingIncomplete,
    SourceMisplaced,
    SourceUnreachable,
)

_SECONDS: Final = 60.0
_MOST_NAMED: Final = 10
_HEADERS: Final = "MESSAGE-ID REFERENCES IN-REPLY-TO SUBJECT FROM DATE"
_IDLE_SECONDS: Final = 60.0
_SILENT_SECONDS: Final = 600.0
"""For so long, a server may say nothing of a folder; then the connection is made again."""
_CHANGE: Final = re.compile(rb"\* (\d+ (EXISTS|EXPUNGE|FETCH .*\\Deleted)|VANISHED)", re.IGNORECASE)
_MOST_BYTES: Final = 64 * 1024 * 1024
"""What the answer to one command may be."""
_NOT_NOW: Final = re.compile(r"\[(UNAVAILABLE|INUSE|LIMIT|SERVERBUG)\]", re.IGNORECASE)
_CONTENT: Final = re.compile(rb"BODY\[\]")
Answer = TypeVar("Answer")


class _CheckedIMAP(imaplib.IMAP4):
    """Connects to one of the addresses that were checked, rather than to whatever the name leads to now."""

    def __init__(
        self, host: str, addresses: Sequence[str], port: int, context: ssl.SSLContext | None
    ) -> None:
        self._addresses = addresses
        self._context = context
        self._left = _MOST_BYTES
        self._is_idle, self._is_changed, self._until = False, False, 0.0
        super().__init__(host, port, _SECONDS)

    def begin(self) -> None:
        """A command comes next."""
        self._left = _MOST_BYTES

    def read(self, size: int) -> bytes:
        """So much of an answer. Raises IMAP4.abort if that is too much."""
        self._take(size)
        return super().read(size)

    def readline(self) -> bytes:
        """A line of an answer. Raises IMAP4.abort if that is too much."""
        line = super().readline()
        self._take(len(line))
        if self._is_idle and line.startswith(b"* "):
            self._is_changed = _CHANGE.match(line) is not None
            if self._is_changed or time.monotonic() > self._until:
                self._is_idle = False
                self.send(b"DONE\r\n")
        return line

    def idle(self) -> bool:
        """Wait until messages come or go in the open folder, and return True; or for some minutes, as long as
        the server says anything. Raises OSError, IMAP4.error.
        """
        self._is_idle, self._is_changed, self._until = True, False, time.monotonic() + _IDLE_SECONDS
        self.socket().settimeout(_SILENT_SECONDS)
        try:
            _good(self.xatom("IDLE"))
        finally:
            self._is_idle = False
        self.socket().settimeout(_SECONDS)
        return self._is_changed

    def _take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise self.abort("the answer is too large")

    def open(self, host: str = "", port: int = 143, timeout: float | None = None) -> None:
        self.host, self.port = host, port
        plain = _connected(self._addresses, port, timeout)
        try:
            self.sock = self._context.wrap_socket(plain, server_hostname=host) if self._context else plain
        except BaseException:  # whatever ends it, the connection is closed
            plain.close()
            raise
        self.file = self.sock.makefile("rb")


def _connected(addresses: Sequence[str], port: int, timeout: float | None) -> socket.socket:
    """A connection to the first address that answers. Raises OSError."""
    *others, last = addresses
    for address in others:
        with suppress(OSError):
            return socket.create_connection((address, port), timeout)
    return socket.create_connection((last, port), timeout)


class SilentMailServer(SourceUnreachable):
    """It has not answered for too long."""


class MailConnection:
    """A session that only reads. Raises SourceFault."""

    def __init__(self, settings: ImapSettings, addresses: Sequence[str]) -> None:
        self._settings = settings
        self._addresses = addresses
        self._server: _CheckedIMAP | None = None
        self._folder: tuple[str, int] | None = None
        self._is_empty = False

    def sign_in(self, password: str) -> None:
        """Connect, if that was not done before."""
        if self._server is not None:
            return
        settings, context = self._settings, ssl.create_default_context()
        with _translated():
            is_tls = settings.security == "tls"
            server = _CheckedIMAP(settings.host, self._addresses, settings.port, context if is_tls else None)
            try:
                if not is_tls:
                    server.starttls(ssl_context=context)
                self._authenticate(server, password)
            except BaseException:  # whatever ends it, the connection is closed
                server.shutdown()
                raise
        self._server = server

    def _authenticate(self, server: imaplib.IMAP4, password: str) -> None:
        user = self._settings.user
        try:
            server.authenticate("PLAIN", lambda _challenge: f"\0{user}\0{password}".encode())
        except imaplib.IMAP4.abort:
            raise
        except imaplib.IMAP4.error as error:
            if _NOT_NOW.search(str(error)):  # RFC 5530
                raise SourceUnreachable("The mail server lets nobody sign in now") from None
            raise CredentialRefused("The mail server refuses the user or the password") from None

    def close(self) -> None:
        """End the session."""
        server, self._server = self._server, None
        if server is not None:
            try:
                server.logout()
            except (imaplib.IMAP4.error, OSError):
                server.shutdown()

    def interrupt(self) -> None:
        """End what waits for an answer in another thread."""
        server = self._server
        if server is not None:
            with suppress(OSError):
                server.socket().shutdown(socket.SHUT_RDWR)

    def can_idle(self) -> bool:
        """Whether the server says by itself that messages come and go."""
        capabilities = self._command(lambda server: _good(server.capability()))
        return b"IDLE" in b" ".join(line for line in capabilities if line).upper().split()

    def idle(self) -> bool:
        """Wait until something changes in the open folder, and return True; for some minutes at most."""
        try:
            return self._command(lambda server: server.idle())
        except SilentMailServer:
            return False

    def state(self, folder: str) -> str:
        """A text that differs once messages have come or gone in a folder."""
        names = "(MESSAGES UIDNEXT UIDVALIDITY)"
        return str(self._command(lambda server: _good(server.status(folder.encode("latin-1"), names))))  # type: ignore[arg-type]

    def folders(self) -> list[MailFolder]:
        """All folders."""
        return self._command(lambda server: read_folders(_good(server.list())))

    def enter(self, folder: str) -> int:
        """Open a folder for reading; returns its UIDVALIDITY."""

        def ask(server: imaplib.IMAP4) -> int:
            count = _good(server.select(folder.encode("latin-1"), readonly=True))  # type: ignore[arg-type]
            self._is_empty = count == [b"0"]
            _, numbers = server.response("UIDVALIDITY")
            if not numbers or numbers[0] is None:
                raise ReplyBroken("a folder has no UIDVALIDITY")
            return int(numbers[0])

        if self._folder is None or self._folder[0] != folder:
            self._folder = (folder, self._command(ask))
        return self._folder[1]

    def leave(self) -> None:
        """Forget the open folder, so that the next `enter` sees what has changed."""
        self._folder = None

    def numbers(self) -> set[int]:
        """The UIDs of the messages in the open folder that are not marked as deleted."""
        lines = self._command(lambda server: _good(server.uid("SEARCH", "UNDELETED")))
        if lines == [None] and not self._is_empty:
            raise ListingIncomplete("The mail server does not say which mails there are")
        return {int(number) for line in lines if line for number in line.split()}

    def messages(self, numbers: list[int]) -> list[MailMessage]:
        """Headers of messages in the open folder; those that are gone are left out."""
        items = f"(UID RFC822.SIZE INTERNALDATE BODY.PEEK[HEADER.FIELDS ({_HEADERS})])"
        uids = ",".join(map(str, numbers))
        return self._command(lambda server: list(read_messages(_good(server.uid("FETCH", uids, items)))))

    def named(self, message_id: str) -> list[MailMessage]:
        """Headers of messages in the open folder whose id holds this text."""
        criteria = ("HEADER", "MESSAGE-ID", quoted(message_id))
        lines = self._command(lambda server: _good(server.uid("SEARCH", *criteria)))
        numbers = [int(number) for line in lines if line for number in line.split()]
        return self.messages(numbers[:_MOST_NAMED]) if numbers else []

    def piece(self, uid: int, start: int, size: int) -> bytes | None:
        """`size` bytes of a message from `start` on; None if it is gone."""
        section = f"(BODY.PEEK[]<{start}.{size}>)"
        for entry in self._command(lambda server: _good(server.uid("FETCH", str(uid), section))):
            if isinstance(entry, tuple) and _CONTENT.search(entry[0]):
                return bytes(entry[1])
        return None

    def _command(self, ask: Callable[[_CheckedIMAP], Answer]) -> Answer:
        server = self._server
        if server is None:
            raise SourceUnreachable("The connection to the mail server is closed")
        try:
            with _translated():
                server.begin()
                return ask(server)
        except SourceUnreachable:  # the next call connects again
            self._server, self._folder = None, None
            server.shutdown()
            raise


def _good(answer: tuple[str, list[Any]]) -> list[Any]:
    status, data = answer
    if status != "OK":
        raise ReplyBroken("the server refuses a command")
    return data


@contextmanager
def _translated() -> Iterator[None]:
    """Turn the library's errors into faults: its texts may hold what was sent."""
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        raise SourceMisplaced(f"The mail server's certificate is not good: {error.verify_message}") from None
    except TimeoutError as error:
        raise SilentMailServer(f"The mail server does not answer ({type(error).__name__})") from None
    except (imaplib.IMAP4.abort, OSError) as error:
        raise SourceUnreachable(f"The mail server does not answer ({type(error).__name__})") from None
    except (imaplib.IMAP4.error, ReplyBroken, ValueError) as error:
        raise ListingIncomplete(
            f"The mail server's answer is not understood ({type(error).__name__})"
        ) from None
