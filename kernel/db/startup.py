"""The schema at a start: kernel first, then each plugin, and whose tables do not fit is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlalchemy.exc import SQLAlchemyError

from kernel.db import migrate
from kernel.db.migrate import Owner, Pending
from kernel.errors import FAULTS, StartupError
from kernel.jobs.queue import migrate_queue

if TYPE_CHECKING:
    from kernel.platform import Platform


class SchemaStart:
    """Brings the tables of one platform up to date, owner by owner."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._database = platform.database

    def owners(self) -> list[Owner]:
        """Who has tables, kernel first; a plugin that claims another owner's table is refused."""
        declared = [Owner(name, tables) for name, tables in self._platform.declare("register_tables")]
        taken: dict[str, str] = {}
        found = []
        for owner in [migrate.kernel_owner(), *declared]:
            try:
                migrate.claim(owner, taken)
            except migrate.TableTaken as error:
                self._platform.fail_plugin(owner.name, str(error))
            else:
                found.append(owner)
        return found

    async def migrate(self, *, apply: bool) -> list[Pending]:
        """Apply what is pending, where `apply` says so; answers what was not applied."""
        owners = self.owners()
        states = [await self._pending(owner) for owner in owners]
        found = [state for state in states if state is not None and state.revisions]
        if not (found and apply):
            return found
        async with migrate.migration_lock(self._database):
            await self._upgrade(owners)
        return []

    def refuse_pending(self, pending: Sequence[Pending]) -> None:
        """Nothing runs on tables that are behind: the kernel's stop the start, a plugin's refuse it."""
        for state in pending:
            why = f"the migrations {', '.join(state.revisions)} are pending; run: platformctl db upgrade"
            if state.owner == "kernel":
                raise StartupError(f"the database is behind: {why}")
            self._platform.fail_plugin(state.owner, f"its tables are behind: {why}")

    async def _pending(self, owner: Owner) -> Pending | None:
        """What the owner's tables lack; a plugin whose migrations can't be read is refused."""
        has_tables = bool(owner.tables.base.metadata.tables)
        if has_tables and self._platform.role != "tool" and not migrate.has_revisions(owner):
            why = "it has tables but no migrations; write one with: platformctl db revision"
            self._platform.fail_plugin(owner.name, why)
            return None
        try:
            return await migrate.pending(self._database, owner)
        except (SQLAlchemyError, OSError):
            raise
        except FAULTS as error:
            if owner.name == "kernel":
                raise StartupError(f"the database can't be used: {reason_of(error)}") from error
            self._platform.fail_plugin(owner.name, f"its migrations can't be used: {reason_of(error)}")
            return None

    async def _upgrade(self, owners: Sequence[Owner]) -> None:
        taken: dict[str, str] = {}
        await migrate_queue(self._platform.settings.sqlalchemy_url)
        for owner in owners:
            if owner.name != "kernel" and self._platform.host.records[owner.name].status != "loaded":
                continue
            try:
                await migrate.upgrade(self._database, owner, taken)
            except FAULTS as error:
                if owner.name == "kernel":
                    raise
                why = f"its migration failed: {type(error).__name__}: {error}"
                self._platform.fail_plugin(owner.name, why)


def reason_of(error: BaseException) -> str:
    """The first line of what a driver or a script says, with the kind of its error."""
    cause = getattr(error, "orig", None) or error
    return f"{type(cause).__name__}: {cause}".splitlines()[0][:300]
