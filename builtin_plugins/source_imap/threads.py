"""Which thread a message belongs to: that of the message at its beginning (RFC 5322, section 3.6.4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

_DEPTH: Final = 100


@dataclass(frozen=True, slots=True)
class MessageLinks:
    """The id of a message, the ids that it refers to from the thread's beginning on, and whom it answers."""

    own: str
    references: tuple[str, ...]
    answers: str

    @property
    def above(self) -> str:
        """The earliest message that it names; empty if it begins a thread."""
        return self.references[0] if self.references else self.answers


Lookup: TypeAlias = Callable[[str], Awaitable[MessageLinks | None]]


class MailThreads:
    """The threads of one listing. `look_up` asks the server for a message by its id."""

    def __init__(self, look_up: Lookup, *, is_update: bool) -> None:
        self._look_up = look_up
        self._is_update = is_update
        self._threads: dict[str, str] = {}

    async def thread_of(self, message: MessageLinks) -> str:
        """The id of the message with which its thread begins; empty if the message has no id either.

        Mails that only say what they answer are followed up to the first, on the server where they were not
        listed before. Of those with references, the first one is believed in a whole listing, as far as
        nothing else was listed.
        """
        above = message.above
        may_ask = self._is_update or not message.references
        thread = await self._beginning(above, may_ask=may_ask) if above else message.own
        if message.own:
            self._threads[message.own] = thread
        return thread

    async def _beginning(self, above: str, *, may_ask: bool) -> str:
        path = list[str]()
        while above not in self._threads and above not in path and len(path) < _DEPTH:
            path.append(above)
            message = await self._look_up(above) if may_ask else None
            if message is None or not message.above:
                break
            above = message.above
        thread = self._threads.get(above, above)
        if may_ask:
            self._threads |= dict.fromkeys(path, thread)
        return thread
