"""Units on PostgreSQL: plain functions run over asyncpg, in greenlets on the event loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlencode

from sqlalchemy import event
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.exc import DBAPIError, InvalidatePoolError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import ConnectionPoolEntry, NullPool
from sqlalchemy.util.concurrency import greenlet_spawn

from kernel.db.outages import is_deadlock
from kernel.db.outbox import Outbox
from kernel.db.units import Unit, checked, uninterrupted
from kernel.errors import StartupError
from kernel.libs.asyncpg_connections import NOT_FOR_THE_SERVER, Connector

T = TypeVar("T")

_TRIES = 3
_FRESH = 0.2  # seconds after its last use for which a connection is assumed to be alive


def postgres_engine(url: str, pool_size: int) -> AsyncEngine:
    """An engine for an address in libpq's spelling. It keeps up to twice `pool_size` connections.

    Making and closing connections under load would cost more than keeping them.
    """
    address = make_url(url)
    engine = _engine(address, pool_size=2 * pool_size, max_overflow=0)
    _replace_dead_connections(engine.sync_engine)
    return engine


def unpooled_engine(url: str) -> AsyncEngine:
    """An engine without a pool, for connections that are held for long.

    In the pool, they would take connections away from requests.
    """
    return _engine(make_url(url), poolclass=NullPool)


def _engine(address: URL, **pool: Any) -> AsyncEngine:
    return create_async_engine(
        address.set(query={}), hide_parameters=True, connect_args=_options(address), **pool
    )


def _replace_dead_connections(engine: Engine) -> None:
    """Ping only connections that were idle for a while; pinging every time would cost three round trips."""

    @event.listens_for(engine, "checkin")
    def _rests(_connection: Any, record: ConnectionPoolEntry) -> None:
        record.info["rests_since"] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def _wakes(connection: Any, record: ConnectionPoolEntry, _proxy: Any) -> None:
        rests_since = record.info.get("rests_since")
        if rests_since is None or time.monotonic() - rests_since < _FRESH:
            return
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error as error:
            raise InvalidatePoolError() from error


def _options(address: URL) -> dict[str, Any]:
    """The options of a PostgreSQL address as asyncpg takes them; addresses spell them as libpq does."""
    query = {name: value for name, value in address.query.items() if name not in NOT_FOR_THE_SERVER}
    options: dict[str, Any] = {"dsn": "postgresql:///?" + urlencode(query)} if query else {}
    try:
        return {**options, "async_creator_fn": Connector(address).connect}
    except ValueError as error:
        raise StartupError(f"DATABASE_URL: {error}") from None


class PostgresUnits:
    """Runs units of reading and writing.

    A read is not wrapped in a transaction, which would cost two more round trips: each statement sees what is
    committed when it begins. A connection that died in the pool fails at its first statement.
    """

    def __init__(self, engine: AsyncEngine, outbox: Outbox) -> None:
        self._engine = engine
        self._outbox = outbox
        self._single = engine.sync_engine.execution_options(isolation_level="AUTOCOMMIT")
        self._frozen = engine.sync_engine.execution_options(isolation_level="REPEATABLE READ")

    async def read(self, fn: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run `fn(session, …)` without a transaction; once more if the connection was dead."""
        return await greenlet_spawn(_read, self._single, fn, args, kwargs)

    async def snapshot(self, fn: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run `fn(session, …)`; all statements see one state of the database."""
        return await greenlet_spawn(_read, self._frozen, fn, args, kwargs)

    async def write(self, fn: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run `fn(unit, …)` in a transaction, commit, and run what follows the commit.

        Of units that wait for each other, the server ends one, which is then run anew.
        """
        for left in reversed(range(_TRIES)):
            session = Session(self._engine.sync_engine, expire_on_commit=False, close_resets_only=False)
            unit = Unit(session, self._outbox, is_sqlite=False)
            try:
                result: T = await greenlet_spawn(_write, unit, fn, args, kwargs)
            except BaseException as error:  # boundary: a cancelled request returns its connection, too
                await uninterrupted(greenlet_spawn(session.close))
                if not (left and is_deadlock(error)):
                    raise
            else:
                break
        # A client that leaves cancels its request, but nothing may stop between a commit and what follows it.
        await uninterrupted(self._complete(unit))
        return result

    async def close(self) -> None:
        """Close every connection."""
        await self._engine.dispose()

    async def _complete(self, unit: Unit) -> None:
        try:
            await greenlet_spawn(unit.session.commit)
        finally:
            await greenlet_spawn(unit.session.close)
        unit.deliver_notices()
        if unit.has_followers:
            await unit.follow_up()


def _read(engine: Engine, fn: Callable[..., T], args: Any, kwargs: Any) -> T:
    try:
        return _read_once(engine, fn, args, kwargs)
    except DBAPIError as error:
        if not error.connection_invalidated:
            raise
    return _read_once(engine, fn, args, kwargs)


def _read_once(engine: Engine, fn: Callable[..., T], args: Any, kwargs: Any) -> T:
    with Session(engine, autoflush=False, expire_on_commit=False, close_resets_only=False) as session:
        return checked(fn(session, *args, **kwargs))


def _write(unit: Unit, fn: Callable[..., T], args: Any, kwargs: Any) -> T:
    result = checked(fn(unit, *args, **kwargs))
    unit.store_events()
    unit.session.flush()
    return result
