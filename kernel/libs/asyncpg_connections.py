"""Connections to PostgreSQL that notice when the other side disappears silently.

A machine that loses power, or a network that drops packets, ends no connection. Without limits, a request
would wait a quarter of an hour until the operating system gives up, and the server would keep the locks of a
vanished client for two hours. Options in the address win, spelled as in libpq: `connect_timeout` (seconds),
`tcp_user_timeout` (milliseconds), `keepalives_idle` and so on.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import suppress
from functools import cached_property
from typing import Any

from sqlalchemy.engine import URL

_LIMITS = {
    "connect_timeout": "5",
    "tcp_user_timeout": "5000",
    "keepalives_idle": "3",
    "keepalives_interval": "1",
    "keepalives_count": "3",
}
NOT_FOR_THE_SERVER = frozenset({*_LIMITS, "keepalives", "channel_binding"})
"""Options that only libpq knows; other drivers would send them to the server."""

_HALF_MADE = 2.0  # seconds for which an unwanted connection attempt may still complete
# The server ends a session whose client has not answered for 11 seconds, and releases its locks.
_OF_THE_SERVER = "SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3"


class DatabaseUnreachable(ConnectionError):
    """No connection to the database server; the driver's own error could come from any socket."""


class Connector:
    """Makes the connections of one engine with asyncpg.

    While the server does not answer, one attempt at a time probes it, and all others are refused at once.
    """

    def __init__(self, address: URL) -> None:
        """Raises ValueError, which names it, for a limit that is not a number."""
        limits = {name: _number(address, name) for name in _LIMITS}
        self._patience = limits["connect_timeout"] if limits["connect_timeout"] > 0 else None
        self._options = {"TCP_USER_TIMEOUT": limits["tcp_user_timeout"]}
        if address.query.get("keepalives") != "0":
            self._options |= {
                "SO_KEEPALIVE": 1,
                "TCP_KEEPIDLE": limits["keepalives_idle"],
                "TCP_KEEPINTVL": limits["keepalives_interval"],
                "TCP_KEEPCNT": limits["keepalives_count"],
            }
        self._away = False
        self._looking = 0

    async def connect(self, *arguments: Any, **options: Any) -> Any:
        """A connection. Raises DatabaseUnreachable."""
        if self._away and self._looking:
            raise DatabaseUnreachable("the server does not answer")
        self._looking += 1
        try:
            connection = await self._connect(*arguments, **options)
        except TimeoutError as error:
            self._away = True
            raise DatabaseUnreachable("no answer in time") from error
        except ssl.SSLError:
            raise
        except (OSError, RuntimeError) as error:  # uvloop raises RuntimeError if the socket was closed
            raise DatabaseUnreachable(*error.args) from error
        finally:
            self._looking -= 1
        self._away = False
        return connection

    async def _connect(self, *arguments: Any, **options: Any) -> Any:
        """Connect. If the caller is cancelled meanwhile, close the connection once it is made.

        If cancelled halfway, asyncpg abandons the connection, whose end is then logged as "unexpected
        connection_lost() call".
        """
        connecting = asyncio.ensure_future(self._open(*arguments, **options))
        try:
            return await asyncio.shield(connecting)
        except asyncio.CancelledError:
            try:
                await asyncio.wait({connecting}, timeout=_HALF_MADE)
            finally:
                if connecting.done() and not connecting.cancelled() and connecting.exception() is None:
                    connecting.result().terminate()
                connecting.cancel()
            raise

    async def _open(self, *arguments: Any, **options: Any) -> Any:
        import asyncpg

        parameters = {"timeout": self._patience, "connection_class": self._kind, **options}
        connection = await asyncpg.connect(*arguments, **parameters)
        try:
            await connection.execute(_OF_THE_SERVER, timeout=self._patience)
        except BaseException:  # including cancellation: leave no half-made connection open
            connection.terminate()
            raise
        return connection

    @cached_property
    def _kind(self) -> type[Any]:
        """asyncpg's connection class with limits on its sockets; the library is imported only when needed."""
        import asyncpg

        limits = self._options

        class Limited(asyncpg.Connection):  # type: ignore[misc, no-any-unimported, unused-ignore]
            __slots__ = ()

            def __init__(self, protocol: Any, transport: Any, *rest: Any) -> None:
                super().__init__(protocol, transport, *rest)
                with suppress(RuntimeError):  # closed meanwhile: the first statement will fail
                    _limit(transport.get_extra_info("socket"), limits)

        return Limited


def _number(address: URL, name: str) -> int:
    value = address.query.get(name, _LIMITS[name])
    try:
        return int(str(value))
    except ValueError:
        unit = {"tcp_user_timeout": "milliseconds", "keepalives_count": "probes"}.get(name, "seconds")
        raise ValueError(f"{name} must be one whole number of {unit}, not {value!r}") from None


def _limit(connection: Any, options: dict[str, int]) -> None:
    """Have the system end a connection whose other side accepts no data or shows no sign of life.

    0 leaves the system's default, as in libpq.
    """
    if connection is None or connection.family == socket.AF_UNIX:
        return
    for name, value in options.items():
        option = getattr(socket, name, None)  # Linux has them all
        if option is not None and value > 0:
            level = socket.SOL_SOCKET if name.startswith("SO_") else socket.IPPROTO_TCP
            with suppress(OSError):  # this system refuses the value
                connection.setsockopt(level, option, value)
