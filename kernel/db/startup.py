"""The schema at a start, kernel first, then each plugin; a plugin whose tables don't fit is refused."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence

from sqlalchemy import URL, inspect, make_url, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from kernel.auth.models import Account
from kernel.db import migrate
from kernel.db.engine import Database
from kernel.db.migrate import Owner, Pending, UnknownRevision
from kernel.db.outages import is_lost
from kernel.errors import ANY_ERROR, StartupError
from kernel.hooks import hookspecs
from kernel.plugins.declarations import Declarations
from kernel.plugins.resource_keys import ResourceKey
from kernel.plugins.states import PluginStates
from kernel.process.machine_faults import is_machine_fault

log = logging.getLogger("platform.db")

BeforeMigrations = Callable[[Sequence[Pending]], Awaitable[None]]

EMPTY = "the database has no tables yet: start the platform, which makes them, or run: platformctl db upgrade"


class Schema:
    """Brings the tables of one platform up to date, owner by owner.

    `pending` holds what the last check found and did not apply, `unusable` why a plugin's tables can't be
    used. With `strict`, a plugin with tables but no migrations is refused; a tool that writes migrations
    allows it. `before_migrations` gets what is pending before it is applied to a database in use; an error
    that it raises prevents that.
    """

    def __init__(
        self, database: Database, declarations: Declarations, states: PluginStates, *, strict: bool
    ) -> None:
        self._database = database
        self._declarations = declarations
        self._states = states
        self._strict = strict
        self.pending: list[Pending] = []
        self.unusable: dict[str, str] = {}
        self.before_migrations: BeforeMigrations | None = None

    def owners(self) -> list[Owner]:
        """The owners of tables, kernel first; a plugin that claims another owner's table is refused."""
        declared = [Owner(name, tables) for name, tables in self._declarations.of(hookspecs.register_tables)]
        owner_by_table: dict[str, str] = {}
        owners = []
        for owner in [migrate.kernel_owner(), *declared]:
            try:
                migrate.claim(owner, owner_by_table)
            except migrate.TableTaken as error:
                self._states.fail(owner.name, str(error))
            else:
                owners.append(owner)
        return owners

    async def migrate(self, *, apply: bool) -> None:
        """Find what is pending and, with `apply`, apply it. Raises StartupError."""
        try:
            self.pending = await self._migrate(apply=apply)
        except (SQLAlchemyError, OSError) as error:
            raise unusable(error, self._database.url) from error

    async def _migrate(self, *, apply: bool) -> list[Pending]:
        owners = self.owners()
        states = [await self._pending(owner) for owner in owners]
        pending = [state for state in states if state is not None and state.revisions]
        if not (pending and apply):
            return pending
        async with migrate.migration_lock(self._database):
            # Another process may have applied them meanwhile; an unused database has nothing to lose.
            left = [state for state in [await self._pending(owner) for owner in owners] if state]
            waiting = [state for state in left if state.revisions]
            tell, in_use = self.before_migrations, await self._database.read(_holds_accounts)
            if waiting and in_use and tell is not None:
                await tell(waiting)
            await self._upgrade(owners)
        return []

    def refuse_pending(self) -> None:
        """Refuse outdated tables: the kernel's stop the start, a plugin's keep it out."""
        for state in self.pending:
            if state.owner == "kernel" and state.is_new:
                raise StartupError(EMPTY)
            why = f"the migrations {', '.join(state.revisions)} are pending; run: platformctl db upgrade"
            if state.owner == "kernel":
                raise StartupError(f"the database is out of date: {why}")
            self._states.fail(state.owner, f"its tables are out of date: {why}")

    async def _pending(self, owner: Owner) -> Pending | None:
        """The owner's pending migrations; a plugin whose migrations can't be read is refused."""
        has_tables = bool(owner.tables.base.metadata.tables)
        if has_tables and self._strict and not migrate.has_revisions(owner):
            why = "it has tables but no migrations; write one with: platformctl db revision"
            self._states.fail(owner.name, why)
            return None
        try:
            return await migrate.pending(self._database, owner)
        except (SQLAlchemyError, OSError):
            raise
        except ANY_ERROR as error:
            if owner.name == "kernel":
                raise unusable(error, self._database.url) from error
            why = f"its migrations can't be used: {reason_of(error)}"
            self.unusable[owner.name] = str(unfitting(error)) if isinstance(error, UnknownRevision) else why
            self._states.fail(owner.name, self.unusable[owner.name])
            return None

    async def _upgrade(self, owners: Sequence[Owner]) -> None:
        owner_by_table: dict[str, str] = {}
        for owner in owners:
            if owner.name != "kernel" and not self._states.is_loaded(owner.name):
                continue
            try:
                await migrate.upgrade(self._database, owner, owner_by_table)
            except ANY_ERROR as error:
                if owner.name == "kernel" or _is_not_its_fault(error):
                    raise
                # The reason is one line; the log has the statement and the traceback for the plugin's author.
                log.warning("a migration of %s failed", owner.name, exc_info=error)
                self._states.fail(owner.name, f"its migration failed: {reason_of(error)}")


def _is_not_its_fault(error: BaseException) -> bool:
    """Whether a plugin's migration failed because of the machine or the connection; it may work next time."""
    return is_lost(error) or is_machine_fault(error)


def _holds_accounts(session: Session) -> bool:
    """Whether the database was ever used."""
    if not inspect(session.connection()).has_table(Account.__tablename__):
        return False
    return session.scalar(select(Account.id).limit(1)) is not None


SCHEMA: ResourceKey[Schema] = ResourceKey("schema")


def unusable(error: BaseException, url: str) -> StartupError:
    """The error for a database at this address that can't be used, or for a file that is needed before it."""
    if isinstance(error, UnknownRevision):
        return unfitting(error)
    if isinstance(error, OSError) and error.filename is not None:  # a connection that fails names no file
        return StartupError(f"{error.filename}: {error.strerror}")
    address = make_url(url)
    place = URL.create(
        address.get_backend_name(), host=address.host, port=address.port, database=address.database
    )
    return StartupError(f"the database can't be used: {reason_of(error)} (DATABASE_URL: {place})")


def unfitting(error: UnknownRevision) -> StartupError:
    """The error for tables made by another version, with the remedy."""
    return StartupError(f"{error}; {error.remedy}")


def reason_of(error: BaseException) -> str:
    """The error's type and the first line of its message."""
    cause = getattr(error, "orig", None) or error
    return f"{type(cause).__name__}: {cause}".splitlines()[0][:300]
