"""What plugins do before a start touches the database: while no process serves, or before migrations."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from kernel.db.locks import installation_lock
from kernel.db.migrate import Owner, Pending
from kernel.errors import StartupError
from kernel.plugins.loading import PluginRecord
from kernel.plugins.states import PluginStates
from kernel.stores.offers import StoreNeeds
from kernel.stores.protocols import BlobStore

log = logging.getLogger("platform.start")

_LOOK_AGAIN = 1.0  # seconds


@dataclass(frozen=True)
class Opening:
    """A platform that is about to open: its settings, database and secrets, and the owners of tables.

    `blobs` is None if the blob store is a plugin's that is not open yet (`StoreOffer.early`).
    """

    needs: StoreNeeds
    owners: Callable[[], Sequence[Owner]]
    blobs: BlobStore | None


@dataclass(frozen=True)
class StartGuard:
    """What a plugin does at the start of each process that serves or works, before the migrations.

    While `waits(opening)` is true, the process waits until no other one is in service, and runs
    `act(opening)` alone; after that, even a failed one, `waits` must be false. `before_migrations(opening,
    pending)` runs before a database in use is migrated; an error that it raises stops the start, with nothing
    changed. So does a plugin that has a guard and is out of service.
    """

    waits: Callable[[Opening], Awaitable[bool]]
    act: Callable[[Opening], Awaitable[None]]
    before_migrations: Callable[[Opening, Sequence[Pending]], Awaitable[None]]


class StartGuards:
    """The guards of all plugins."""

    def __init__(self, declared: Sequence[tuple[str, Sequence[StartGuard]]], states: PluginStates) -> None:
        self._declared = declared
        self._states = states

    async def before_migrations(self, opening: Opening, pending: Sequence[Pending]) -> None:
        """Let each guard prepare. Raises StartupError if a plugin that has a guard is out of service: a wrong
        setting or a missing package must not cost the backup.
        """
        refused = refusal(self._states.records.values())
        if refused is not None:
            raise StartupError(refused)
        for _, guards in self._declared:
            for guard in guards:
                await guard.before_migrations(opening, pending)

    async def enter_service(self, opening: Opening, stack: AsyncExitStack) -> None:
        """Be one of the serving processes until `stack` closes; first do what must be done alone."""
        database = opening.needs.database
        is_told = False
        while True:
            while await self._waiting(opening):
                if not (await self._act_alone(opening) or is_told):
                    is_told = True
                    log.warning(
                        "waiting for other processes to stop: a restore or the like must have the data"
                        " to itself"
                    )
            entering = AsyncExitStack()
            await entering.enter_async_context(installation_lock(database, "serving", shared=True))
            # Somebody may have requested it between the check and the lock.
            if not await self._waiting(opening):
                stack.push_async_exit(entering)
                return
            await entering.aclose()

    async def _act_alone(self, opening: Opening) -> bool:
        """Run the waiting guards, unless others serve for another second; returns whether they ran. Of
        several processes that start together, the first to be alone runs them, then serves.
        """
        async with AsyncExitStack() as alone:
            try:
                lock = installation_lock(opening.needs.database, "serving", seconds=_LOOK_AGAIN)
                await alone.enter_async_context(lock)
            except TimeoutError:
                return False
            for guard in await self._waiting(opening):
                await guard.act(opening)
        return True

    async def _waiting(self, opening: Opening) -> list[StartGuard]:
        in_service = [own for plugin, own in self._declared if self._states.is_loaded(plugin)]
        return [guard for own in in_service for guard in own if await guard.waits(opening)]


def refusal(plugins: Iterable[PluginRecord]) -> str | None:
    """Why a database in use is not migrated: a plugin that has a guard is out of service. None if none is."""
    out = (one for one in plugins if one.status in ("failed", "refused") and _may_guard(one))
    for record in out:
        return (
            f"the database needs an upgrade, but the plugin '{record.name}', which must act first, is out of"
            f" service, so nothing was changed: {record.reason}. To upgrade without it, list it in"
            " PLATFORM_PLUGINS_DISABLED"
        )
    return None


def _may_guard(record: PluginRecord) -> bool:
    """Whether a plugin has guards. One of the platform's own that can't be imported counts: a new version
    may break plugins that were added, but if it breaks one of its own, its installation is incomplete.
    """
    return record.built_in if record.is_guard is None else record.is_guard
