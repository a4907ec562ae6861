"""Listening sockets, limits on headers and slow clients, graceful shutdown."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Sequence
from contextlib import suppress

from aiohttp import web

from kernel.errors import StartupError
from kernel.http.application import Application
from kernel.http.connection import Connection

OTHER_PORT = "choose another --port"
_MAX_LINE = 16 * 1024
_MAX_FIELD = 16 * 1024
_KEEPALIVE = 75.0
_MOST_WAITING = 1024  # connections accepted while closing: as many as the system queues
LAST_WORDS = 0.1  # seconds for requests that are on their way while closing
_MOST_WORDS = 10  # times as long for a first request: its client may be short of processor time


class Listener:
    """One application listening on one address."""

    def __init__(
        self, app: Application, *, patience: float, grace: float, last_words: float = LAST_WORDS
    ) -> None:
        self._app = app
        self._patience = patience
        self._grace = grace
        self._last_words = last_words
        self._runner: web.AppRunner | None = None
        self._listening: asyncio.Server | None = None
        self._bound: socket.socket | None = None
        self.port = 0

    async def start(self, bound: socket.socket) -> None:
        """Serve on an already bound socket."""
        self._bound = bound
        self._runner = web.AppRunner(self._app.web, handler_cancellation=True, shutdown_timeout=self._grace)
        await self._runner.setup()
        assert self._runner.server is not None
        self._runner.server.request_factory = self._app.request
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(self._connection, sock=bound, backlog=1024)
        self.port = bound.getsockname()[1]

    def _connection(self) -> Connection:
        assert self._runner is not None
        assert self._runner.server is not None
        return Connection(
            self._runner.server,
            loop=asyncio.get_running_loop(),
            patience=self._patience,
            access_log=None,
            max_line_size=_MAX_LINE,
            max_field_size=_MAX_FIELD,
            keepalive_timeout=_KEEPALIVE,
        )

    async def stop(self) -> None:
        """Accept no new connections, let running requests finish within the grace period, then close."""
        if self._runner is None:
            return
        bound, self._bound = self._bound, None
        try:
            if bound is not None:
                with suppress(OSError):  # no file handles are left: nobody else is accepted
                    await self._close_the_door(bound)
        finally:
            await self._runner.cleanup()

    async def _close_the_door(self, bound: socket.socket) -> None:
        """Accept the clients that the system has queued: they count as connected, and would be reset."""
        loop = asyncio.get_running_loop()
        assert self._runner is not None
        assert self._runner.server is not None
        assert self._listening is not None
        with bound.dup() as waiting:
            waiting.setblocking(False)
            self._listening.close()
            # At once: who is answered meanwhile would connect again, and the queue would never be empty.
            accepted: list[socket.socket] = []
            for _ in range(_MOST_WAITING):
                try:
                    accepted.append(waiting.accept()[0])
                except ConnectionAbortedError:
                    continue  # this one has left; others may be queued behind it
                except OSError:
                    break  # the queue is empty, or no file handles are left
        for connection in accepted:
            await loop.connect_accepted_socket(self._connection, connection)
        for _ in range(_MOST_WORDS):
            await asyncio.sleep(self._last_words)
            if not any(_awaits_head(connection) for connection in self._runner.server.connections):
                break


def _awaits_head(connection: web.RequestHandler) -> bool:
    return isinstance(connection, Connection) and connection.awaits_head


def bind(host: str, port: int, *, shared: bool = False, send_timeout: float = 60) -> socket.socket:
    """A socket bound to an address; `shared` lets several processes share one port (SO_REUSEPORT).

    A client that reads nothing of its response for `send_timeout` seconds is disconnected.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _limit_silence(sock, send_timeout)
        if shared:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind((host, port))
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock


def cannot_listen(host: str, port: int, error: OSError, remedy: str = OTHER_PORT) -> StartupError:
    """Why `bind` failed, and what to do; `remedy` is for a port that can't be had."""
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        remedy = "choose another --host"
    return StartupError(f"can't listen on {host}:{port}: {error.strerror or error}; {remedy}")


def _limit_silence(listening: socket.socket, seconds: float) -> None:
    """Let the system end connections whose client reads nothing (RFC 5482; Linux; inherited).

    Only the system can tell a slow reader from one that reads nothing: the process sees a full buffer either
    way.
    """
    option = getattr(socket, "TCP_USER_TIMEOUT", None)
    if option is not None:
        listening.setsockopt(socket.IPPROTO_TCP, option, int(seconds * 1000))


async def stop_all(listeners: Sequence[Listener]) -> None:
    """Stop listeners side by side."""
    with suppress(asyncio.CancelledError):
        await asyncio.gather(*(listener.stop() for listener in listeners))
