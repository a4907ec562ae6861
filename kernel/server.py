"""Listening sockets, limits on headers and slow clients, graceful shutdown."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import logging
import socket
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import ContentEncodingError, HttpProcessingError, LineTooLong
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest

from kernel.errors import BadRequest, HeadersTooLarge, PlatformError, StartupError
from kernel.http.application import Application
from kernel.http.error_formats import error_response
from kernel.http.wire import unknown_coding

log = logging.getLogger("platform.server")

OTHER_PORT = "choose another --port"
_MAX_LINE = 16 * 1024
_MAX_FIELD = 16 * 1024
_KEEPALIVE = 75.0
_MOST_WAITING = 1024  # connections accepted while closing: as many as the system queues
_LET_IN = 0.5  # seconds for accepting them
LAST_WORDS = 0.1  # seconds for requests that are on their way while closing
_MOST_WORDS = 10  # times as long for a first request: its client may be short of processor time


# A filter in Linux's classic BPF, (code, jump if true, jump if false, operand): drop packets that open a
# connection. Byte 13 of a TCP header has the flags; SYN is 2.
_NO_NEWCOMERS = ((0x30, 0, 0, 13), (0x45, 0, 1, 2), (0x06, 0, 0, 0), (0x06, 0, 0, 0xFFFFFFFF))
_SO_ATTACH_FILTER = 26  # Linux's number; Python has no name for it


class _ImpatientHandler(RequestHandler):
    """An aiohttp connection, closed if a request head does not arrive in time (slow-header attacks)."""

    __slots__ = ("_head_timer", "_ignores_input", "_patience")

    def __init__(self, *args: Any, patience: float, **options: Any) -> None:
        super().__init__(*args, **options)
        self._patience = patience
        self._head_timer: asyncio.TimerHandle | None = None
        self._ignores_input = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._arm()

    def ignore_input(self) -> None:
        """Drop whatever still arrives. The connection must end with the current response."""
        self._ignores_input = True

    def data_received(self, data: bytes) -> None:
        if self._ignores_input:
            return
        super().data_received(data)
        if self._messages or self._current_request is not None:
            self._disarm()
        elif self._head_timer is None and data:
            self._arm()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._disarm()
        super().connection_lost(exc)

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Refuse what can't be parsed, as the application, which it never reaches, would."""
        if not isinstance(exc, HttpProcessingError) or request.writer.output_size > 0:
            return super().handle_error(request, status, exc, message)
        log.info("a request from %s could not be read: %s", request.remote, type(exc).__name__)
        response = error_response(_refusal(exc))
        response.force_close()
        return response

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Log a damaged request body as information: it is the client's error, not ours. A lost connection is
        not logged here: the access log has it, and whatever cut an answer off logged that.
        """
        error = kw.get("exc_info")
        if isinstance(error, ConnectionResetError):
            return
        if isinstance(error, web.RequestPayloadError):
            log.info(
                "the rest of a damaged body could not be read: %s", type(error.__cause__ or error).__name__
            )
            return
        super().log_exception(*args, **kw)

    @property
    def awaits_head(self) -> bool:
        """Whether the connection is new or has sent only part of a request's head."""
        return self._head_timer is not None

    def _arm(self) -> None:
        self._head_timer = asyncio.get_running_loop().call_later(self._patience, self._give_up)

    def _disarm(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        if self.transport is not None and self._current_request is None and not self._messages:
            self.transport.abort()


def _refusal(error: HttpProcessingError) -> PlatformError:
    if isinstance(error, ContentEncodingError):
        return unknown_coding()
    return HeadersTooLarge() if _too_large(error) else BadRequest()


def _too_large(error: HttpProcessingError) -> bool:
    return isinstance(error, LineTooLong) or "Too many headers" in error.message


class _Server(web.Server):
    """aiohttp's server with these connections."""

    def __call__(self) -> RequestHandler:
        return _ImpatientHandler(self, loop=self._loop, **self._kwargs)


class Listener:
    """One application listening on one address."""

    def __init__(
        self, app: Application, *, patience: float, grace: float, last_words: float = LAST_WORDS
    ) -> None:
        self._app = app
        self._patience = patience
        self._grace = grace
        self._last_words = last_words
        self._runner: web.ServerRunner | None = None
        self._bound: socket.socket | None = None
        self.port = 0

    async def start(self, bound: socket.socket) -> None:
        """Serve on an already bound socket."""
        server = _Server(
            self._app.serve,  # type: ignore[arg-type]  # the factory makes no other requests
            request_factory=self._app.request,
            handler_cancellation=True,
            patience=self._patience,
            access_log=None,
            max_line_size=_MAX_LINE,
            max_field_size=_MAX_FIELD,
            keepalive_timeout=_KEEPALIVE,
        )
        self._bound = bound
        self._runner = web.ServerRunner(server, shutdown_timeout=self._grace)
        await self._runner.setup()
        await web.SockSite(self._runner, bound, backlog=1024).start()
        self.port = bound.getsockname()[1]

    async def stop(self) -> None:
        """Accept no new connections, let running requests finish within the grace period, then close."""
        if self._runner is None:
            return
        bound, self._bound = self._bound, None
        try:
            if bound is not None:
                with suppress(OSError):  # no file handles are left: nobody else is accepted
                    await self._close_the_door(self._runner, bound)
        finally:
            await self._runner.cleanup()

    async def _close_the_door(self, runner: web.ServerRunner, bound: socket.socket) -> None:
        """Accept the clients that the system has queued: they count as connected, and would be reset."""
        loop, server = asyncio.get_running_loop(), runner.server
        assert server is not None
        with bound.dup() as waiting:
            waiting.setblocking(False)
            _let_nobody_queue(waiting)
            for site in list(runner.sites):
                await site.stop()
            until = loop.time() + _LET_IN
            for _ in range(_MOST_WAITING):
                try:
                    connection, _ = waiting.accept()
                except ConnectionAbortedError:
                    continue  # this one has left; others may be queued behind it
                except OSError:
                    break  # the queue is empty, or no file handles are left
                await loop.connect_accepted_socket(server, connection)
                if loop.time() > until:
                    break
        for _ in range(_MOST_WORDS):
            await asyncio.sleep(self._last_words)
            if not any(_awaits_head(connection) for connection in server.connections):
                break


def _let_nobody_queue(listening: socket.socket) -> None:
    """Have the system ignore new connection attempts: clients try again, and are then refused.

    Otherwise more would queue up while the waiting ones are accepted, and be reset when the socket closes.
    """
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in _NO_NEWCOMERS))
    if sys.platform != "linux":
        return
    with suppress(OSError):  # not allowed on this system
        listening.setsockopt(
            socket.SOL_SOCKET,
            _SO_ATTACH_FILTER,
            struct.pack("HP", len(_NO_NEWCOMERS), ctypes.addressof(program)),
        )


def _awaits_head(connection: RequestHandler) -> bool:
    return isinstance(connection, _ImpatientHandler) and connection.awaits_head


def bind(host: str, port: int, *, shared: bool = False, send_timeout: float = 60) -> socket.socket:
    """A socket bound to an address; `shared` lets several processes share one port (SO_REUSEPORT).

    A client that reads nothing of its response for `send_timeout` seconds is disconnected.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _limit_silence(made, send_timeout)
        if shared:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind((host, port))
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    return made


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
