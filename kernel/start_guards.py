"""What plugins do before a start touches the database: with nobody else in service, or before migrations."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from kernel.db.locks import installation_lock
from kernel.db.migrate import Owner, Pending
from kernel.stores.offers import StoreNeeds
from kernel.stores.protocols import BlobStore

log = logging.getLogger("platform.start")

_LOOK_AGAIN = 1.0  # seconds


@dataclass(frozen=True)
class Opening:
    """A platform that is about to open: its settings, database and secrets, and who has tables.

    `blobs` is None if the blob store is a plugin's that is not open yet (`StoreOffer.early`).
    """

    needs: StoreNeeds
    owners: Callable[[], Sequence[Owner]]
    blobs: BlobStore | None


@dataclass(frozen=True)
class StartGuard:
    """What a plugin does at the start of each process that serves or works, before the migrations.

    While `waits(opening)` is true, the process waits until no other one is in service, and runs
    `act(opening)` alone; it must settle what it waited for, failing included. `before_migrations(opening,
    pending)` runs when a database that holds something is about to be migrated; what it raises stops the
    start, with nothing changed.
    """

    waits: Callable[[Opening], Awaitable[bool]]
    act: Callable[[Opening], Awaitable[None]]
    before_migrations: Callable[[Opening, Sequence[Pending]], Awaitable[None]]


async def enter_service(opening: Opening, guards: Sequence[StartGuard], stack: AsyncExitStack) -> None:
    """Count among the processes in service until `stack` closes; first do what must be done alone."""
    database = opening.needs.database
    is_told = False
    while True:
        while await _waiting(opening, guards):
            if not (await _act_alone(opening, guards) or is_told):
                is_told = True
                log.warning(
                    "waiting for other processes to stop: a restore or the like must have the data to itself"
                )
        entering = AsyncExitStack()
        await entering.enter_async_context(installation_lock(database, "serving", shared=True))
        # Somebody may have asked for it between the look and the lock.
        if not await _waiting(opening, guards):
            stack.push_async_exit(entering)
            return
        await entering.aclose()


async def _act_alone(opening: Opening, guards: Sequence[StartGuard]) -> bool:
    """Do it, unless somebody else is in service for a second, and return whether it was done: of several
    processes that start together, the first to be alone does it, and then stays in service.
    """
    async with AsyncExitStack() as alone:
        try:
            lock = installation_lock(opening.needs.database, "serving", seconds=_LOOK_AGAIN)
            await alone.enter_async_context(lock)
        except TimeoutError:
            return False
        for guard in await _waiting(opening, guards):
            await guard.act(opening)
    return True


async def _waiting(opening: Opening, guards: Sequence[StartGuard]) -> list[StartGuard]:
    return [guard for guard in guards if await guard.waits(opening)]
