"""HTTP to a model runtime: limits, one retry before the first byte, and errors without driver text."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from typing import Any

from pydantic import SecretStr

from builtin_plugins.models.runtimes.characters import parsed_json
from builtin_plugins.models.runtimes.errors import (
    AnswerMalformed,
    ModelRuntimeError,
    RuntimeLacksModel,
    RuntimeObjects,
    RuntimeRefused,
    RuntimeTimeout,
    RuntimeUnreachable,
    StreamBroken,
    refused,
)
from builtin_plugins.models.runtimes.protocol import RuntimeLimits
from kernel.sdk import CallLimits, OutgoingClient, OutgoingError, OutgoingReply
from kernel.sdk.outgoing import AnswerTooLarge, CallFailed, CallTimedOut

log = logging.getLogger("platform.models")

Json = dict[str, Any]
NamesUnknownModel = Callable[[object], bool]
_ATTEMPTS = 2
_MAX_ERROR_BYTES = 64 << 10
_OBJECTIONS = (400, 413, 422)
_NO_SUCH_PATH = (404, 405)
_LONGEST_OBJECTION = 500
_ENDLESS = 1 << 40


class RuntimeTransport:
    """One runtime's address and credentials, over a client that the caller opens and closes.

    ``names_unknown_model`` tells from the JSON body of a 404 whether the model is missing or the path.
    """

    def __init__(
        self,
        client: OutgoingClient,
        base_url: str,
        limits: RuntimeLimits,
        names_unknown_model: NamesUnknownModel,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._client = client
        self._base = base_url.rstrip("/")
        self._headers = dict(headers or {})
        self._names_unknown_model = names_unknown_model
        self.limits = limits

    async def json(
        self, method: str, path: str, body: Json | None = None, *, model: str = "", chat: bool = False
    ) -> Json:
        """One JSON object for one request. ``model`` is named by a ``RuntimeLacksModel``.

        For a ``chat`` that a client wrote, what the runtime finds wrong in it is a ``RuntimeObjects``.
        """
        limits = self._limits()
        if method == "GET":  # nothing is computed, and others may wait for the answer
            limits = replace(limits, total_seconds=min(self.limits.total_s, self.limits.look_s))
        with _translated(AnswerMalformed("it ended early")):
            async with self._answer(method, path, body, model, limits, chat=chat) as reply:
                return _object(await reply.read())

    async def done(self, method: str, path: str, body: Json, *, model: str) -> None:
        """A request whose answer is only a status."""
        with _translated(AnswerMalformed("it ended early")):
            async with self._answer(method, path, body, model, self._limits(), chat=False):
                return

    async def stream(
        self, path: str, body: Json, *, model: str, chat: bool = False, total_s: float | None = None
    ) -> AsyncGenerator[bytes, None]:
        """The chunks of a streamed answer as they arrive; closing the iterator closes the connection."""
        limits = self._limits(silence_s=self.limits.idle_s)
        if total_s is not None:
            limits = replace(limits, total_seconds=total_s, body_bytes=_ENDLESS)
        with _translated(StreamBroken()):
            async with (
                self._answer("POST", path, body, model, limits, chat=chat) as reply,
                aclosing(reply.pieces()) as pieces,
            ):
                async for piece in pieces:
                    yield piece

    async def answers(self, *paths: str) -> bool:
        """Whether a GET of the first of these paths that the runtime has succeeds soon; never raises."""
        with suppress(ModelRuntimeError, TimeoutError):
            async with asyncio.timeout(self.limits.health_s):
                for path in paths:
                    try:
                        await self.json("GET", path)
                    except RuntimeRefused as refused:
                        if refused.upstream_status not in _NO_SUCH_PATH:
                            return False
                    else:
                        return True
        return False

    @asynccontextmanager
    async def _answer(
        self,
        method: str,
        path: str,
        body: Json | None,
        model: str,
        limits: CallLimits,
        *,
        chat: bool,
    ) -> AsyncIterator[OutgoingReply]:
        async with await self._send(method, path, body, limits) as reply:
            if reply.status >= 300:
                raise await self._refusal(reply, model, chat=chat)
            yield reply

    async def _send(self, method: str, path: str, body: Json | None, limits: CallLimits) -> OutgoingReply:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return await self._client.call(
                    method, self._base + path, json=body, headers=self._headers, limits=limits
                )
            except CallTimedOut as error:
                raise (RuntimeUnreachable if error.connecting else RuntimeTimeout) from error
            except CallFailed as error:
                if attempt == _ATTEMPTS:
                    raise RuntimeUnreachable from error
            except OutgoingError as error:
                log.warning("could not call the model runtime: %s", error)
                raise RuntimeUnreachable from error
        raise RuntimeUnreachable

    async def _refusal(self, reply: OutgoingReply, model: str, *, chat: bool) -> ModelRuntimeError:
        body = await _error_body(reply)
        if reply.status == 404 and model and self._names_unknown_model(body):
            return RuntimeLacksModel(model)
        if chat and reply.status in _OBJECTIONS and (message := _objection(body)):
            return RuntimeObjects(reply.status, message)
        after = reply.headers.get("Retry-After", "")
        return refused(reply.status, int(after) if after.isascii() and after.isdigit() else None)

    def _limits(self, silence_s: float | None = None) -> CallLimits:
        # No redirects: one could send prompts to an address that no operator chose.
        limits = self.limits
        return CallLimits(limits.total_s, limits.connect_s, silence_s, limits.max_body_bytes)


def authorization(api_key: SecretStr | str | None) -> dict[str, str]:
    """The header that carries a key; none without one."""
    key = api_key.get_secret_value() if isinstance(api_key, SecretStr) else api_key
    return {"Authorization": f"Bearer {key}"} if key else {}


def _objection(body: object) -> str:
    """The message of an error object, in one line."""
    error = body.get("error", body) if isinstance(body, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return " ".join(message.split())[:_LONGEST_OBJECTION] if isinstance(message, str) else ""


async def _error_body(reply: OutgoingReply) -> object:
    try:
        return parsed_json(await reply.read(_MAX_ERROR_BYTES))
    except (ValueError, OutgoingError):
        return None


@contextmanager
def _translated(broken: ModelRuntimeError) -> Iterator[None]:
    """Translate errors while an answer is read: silence is a timeout, everything else is ``broken``."""
    try:
        yield
    except CallTimedOut as error:
        raise RuntimeTimeout from error
    except AnswerTooLarge as error:
        raise AnswerMalformed(f"it is larger than {error.limit} bytes") from error
    except OutgoingError as error:
        raise broken from error


def _object(body: bytes) -> Json:
    try:
        value = parsed_json(body)
    except ValueError as error:
        raise AnswerMalformed("it is not JSON") from error
    if not isinstance(value, dict):
        raise AnswerMalformed("it is not a JSON object")
    return value
