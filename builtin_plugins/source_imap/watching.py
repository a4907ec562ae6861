"""New mail is noticed when it arrives: by IDLE (RFC 2177), or by asking each minute."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from builtin_plugins.source_imap.connection import MailConnection
from builtin_plugins.source_imap.folders import selected_folders
from builtin_plugins.source_imap.settings import ImapSettings
from builtin_plugins.sources.api import SourceUnreachable

_POLL_SECONDS: Final = 60.0


async def watch_messages(
    connection: MailConnection, settings: ImapSettings, password: str
) -> AsyncGenerator[None]:
    """Yields once it watches, then when messages have come or gone. Raises SourceFault."""
    loop, wait = asyncio.get_running_loop(), _MailWait(connection, settings, password)
    thread = ThreadPoolExecutor(1, "mailbox")  # of its own: it waits nearly all of the time
    try:
        while True:
            await loop.run_in_executor(thread, wait.next)
            yield
    finally:
        wait.stop()
        await asyncio.to_thread(thread.shutdown)
        await asyncio.to_thread(connection.close)


class _MailWait:
    """The first folder that is read is listened to, the others are compared now and then."""

    def __init__(self, connection: MailConnection, settings: ImapSettings, password: str) -> None:
        self._connection, self._settings, self._password = connection, settings, password
        self._ended = threading.Event()
        self._last_states: Mapping[str, str] | None = None

    def stop(self) -> None:
        """Let `next` fail."""
        self._ended.set()
        self._connection.interrupt()

    def next(self) -> None:
        """Return at first at once, then after a change. Blocks. Raises SourceFault."""
        is_changed, connection = False, self._connection
        while not self._ended.is_set():
            connection.sign_in(self._password)
            folders = selected_folders(connection.folders(), self._settings)
            unmarked = 0
            if folders:
                first = min(folders, key=lambda folder: (folder.name.upper() != "INBOX", folder.name))
                connection.leave()
                connection.enter(first.quoted)  # before the comparison: what comes after it is reported
                unmarked = len(connection.numbers())
            now = {one.quoted: connection.state(one.quoted) for one in folders} | {"": str(unmarked)}
            before, self._last_states = self._last_states, now
            if is_changed or now != before:
                return
            if folders and connection.can_idle():
                is_changed = connection.idle()
            else:
                self._ended.wait(_POLL_SECONDS)
        raise SourceUnreachable("The mailbox is watched no longer")
