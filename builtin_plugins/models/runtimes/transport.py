"""HTTP to a model runtime: limits, one retry before the first byte, and errors without driver text."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import aiohttp

from builtin_plugins.models.runtimes.errors import (
    AnswerMalformed,
    ModelNotFound,
    ModelRuntimeError,
    RuntimeTimeout,
    RuntimeUnreachable,
    StreamBroken,
    refused,
)
from builtin_plugins.models.runtimes.protocol import RuntimeLimits

Json = dict[str, Any]
NamesUnknownModel = Callable[[object], bool]
_ATTEMPTS = 2
_MAX_ERROR_BYTES = 64 << 10


class RuntimeTransport:
    """One runtime's address and credentials over a session that somebody else opened and closes.

    ``names_unknown_model`` tells from the JSON body of a 404 whether the model is missing, or the path.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        base_url: str,
        limits: RuntimeLimits,
        names_unknown_model: NamesUnknownModel,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._session = session
        self._base = base_url.rstrip("/")
        self._headers = dict(headers or {})
        self._names_unknown_model = names_unknown_model
        self.limits = limits

    async def json(self, method: str, path: str, body: Json | None = None, *, model: str = "") -> Json:
        """One JSON object for one request. ``model`` is named by a ``ModelNotFound``."""
        with _translated(AnswerMalformed("it ended early")):
            async with self._answer(method, path, body, model, self._silent_timeout()) as response:
                return _object(await self._read(response, self.limits.max_body_bytes))

    async def stream(self, path: str, body: Json, *, model: str) -> AsyncGenerator[bytes, None]:
        """The chunks of a streamed answer as they arrive; closing the iterator closes the connection."""
        with _translated(StreamBroken()):
            async with self._answer("POST", path, body, model, self._streaming_timeout()) as response:
                async for chunk in _bounded(response, self.limits.max_body_bytes):
                    yield chunk

    async def answers(self, path: str) -> bool:
        """Whether a GET of this path succeeds soon; never raises."""
        try:
            async with asyncio.timeout(self.limits.health_s):
                await self.json("GET", path)
        except (ModelRuntimeError, TimeoutError):
            return False
        return True

    @asynccontextmanager
    async def _answer(
        self, method: str, path: str, body: Json | None, model: str, waits: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        response = await self._send(method, path, body, waits)
        try:
            if response.status >= 300:
                raise await self._refusal(response, model)
            yield response
        finally:
            _hang_up(response)

    async def _send(
        self, method: str, path: str, body: Json | None, waits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                # A redirect would carry prompts to an address that no operator chose.
                return await self._session.request(
                    method,
                    self._base + path,
                    json=body,
                    headers=self._headers,
                    timeout=waits,
                    allow_redirects=False,
                )
            except aiohttp.ConnectionTimeoutError as error:
                raise RuntimeUnreachable from error
            except TimeoutError as error:
                raise RuntimeTimeout from error
            except aiohttp.ClientConnectionError as error:
                if attempt == _ATTEMPTS:
                    raise RuntimeUnreachable from error
            except (aiohttp.ClientError, ValueError) as error:
                raise RuntimeUnreachable from error
        raise RuntimeUnreachable

    async def _refusal(self, response: aiohttp.ClientResponse, model: str) -> ModelRuntimeError:
        if response.status == 404 and model and self._names_unknown_model(await self._error_body(response)):
            return ModelNotFound(model)
        after = response.headers.get("Retry-After", "")
        return refused(response.status, int(after) if after.isascii() and after.isdigit() else None)

    async def _error_body(self, response: aiohttp.ClientResponse) -> object:
        try:
            return json.loads(await self._read(response, _MAX_ERROR_BYTES))
        except (ValueError, AnswerMalformed, aiohttp.ClientError):
            return None

    async def _read(self, response: aiohttp.ClientResponse, limit: int) -> bytes:
        return b"".join([chunk async for chunk in _bounded(response, limit)])

    def _silent_timeout(self) -> aiohttp.ClientTimeout:
        return aiohttp.ClientTimeout(total=self.limits.total_s, sock_connect=self.limits.connect_s)

    def _streaming_timeout(self) -> aiohttp.ClientTimeout:
        limits = self.limits
        return aiohttp.ClientTimeout(
            total=limits.total_s, sock_connect=limits.connect_s, sock_read=limits.idle_s
        )


async def _bounded(response: aiohttp.ClientResponse, limit: int) -> AsyncIterator[bytes]:
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > limit:
            raise AnswerMalformed(f"it is larger than {limit} bytes")
        yield chunk


@contextmanager
def _translated(broken: ModelRuntimeError) -> Iterator[None]:
    """Errors while an answer is read: silence is a timeout, everything else is ``broken``."""
    try:
        yield
    except TimeoutError as error:
        raise RuntimeTimeout from error
    except aiohttp.ClientError as error:
        raise broken from error


def _hang_up(response: aiohttp.ClientResponse) -> None:
    """Keep the connection for the next call if the answer was read to its end, else close it.

    A closed connection is how a runtime learns that nobody wants the rest.
    """
    if response.content.at_eof():
        response.release()
    else:
        response.close()


def _object(body: bytes) -> Json:
    try:
        value = json.loads(body)
    except ValueError as error:
        raise AnswerMalformed("it is not JSON") from error
    if not isinstance(value, dict):
        raise AnswerMalformed("it is not a JSON object")
    return value
