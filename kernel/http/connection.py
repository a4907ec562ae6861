"""One client's connection: limits on slow request heads, and the refusal of what can't be parsed."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import ContentEncodingError, HttpProcessingError, LineTooLong

from kernel.errors import BadRequest, HeadersTooLarge, PlatformError
from kernel.http.error_formats import error_response
from kernel.http.wire import Request, unknown_coding

log = logging.getLogger("platform.server")


class Connection(web.RequestHandler):
    """An aiohttp connection, closed if a request head does not arrive in time (slow-header attacks)."""

    __slots__ = ("_head_timer", "_ignores_input", "_is_serving", "_patience")

    def __init__(self, server: web.Server, *, patience: float, **options: Any) -> None:
        super().__init__(server, **options)
        self._patience = patience
        self._head_timer: asyncio.TimerHandle | None = None
        self._ignores_input = self._is_serving = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._arm()

    def begin_request(self) -> None:
        """A request's head has arrived: its handler begins."""
        self._is_serving = True
        self._disarm()

    def end_request(self) -> None:
        """The handler has ended: what arrives now may be the next head."""
        self._is_serving = False

    def ignore_input(self) -> None:
        """Drop whatever still arrives. The connection must end with the current response."""
        self._ignores_input = True

    def data_received(self, data: bytes) -> None:
        if self._ignores_input:
            return
        super().data_received(data)
        # What ends a head begins a request at once: a timer for it would cost 2 µs.
        if data and not self._is_serving and self._head_timer is None and not data.endswith(b"\r\n\r\n"):
            self._arm()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._disarm()
        super().connection_lost(exc)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Refuse what can't be parsed, as the application, which it never reaches, would."""
        self._disarm()
        if not isinstance(exc, HttpProcessingError) or request.writer.output_size > 0:
            return super().handle_error(request, status, exc, message)
        log.info("a request from %s could not be read: %s", request.remote, type(exc).__name__)
        response = error_response(_refusal(exc))
        if isinstance(request, Request) and request.common is not None:
            request.common.add_to(response, request)  # there is no application whose signal does it
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
        if self.transport is None:
            return
        if self.transport.get_write_buffer_size():  # the client is still reading the last response
            self._arm()
        else:
            self.transport.abort()


def _refusal(error: HttpProcessingError) -> PlatformError:
    if isinstance(error, ContentEncodingError):
        return unknown_coding()
    return HeadersTooLarge() if _too_large(error) else BadRequest()


def _too_large(error: HttpProcessingError) -> bool:
    return isinstance(error, LineTooLong) or "Too many headers" in error.message
