"""A server at an address, over Streamable HTTP."""

from __future__ import annotations

import asyncio
import base64
import itertools
from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from builtin_plugins.mcp_client.faults import ServerDenied, ServerFault, ServerRefused, ServerSlow
from builtin_plugins.mcp_client.messages import (
    LEGACY,
    MODERN,
    check_hello,
    hello,
    notification,
    read,
    request,
    result_of,
)
from kernel.sdk import CallLimits, OutgoingClient, OutgoingError, OutgoingReply

_PROBE = 10.0
_SESSIONS = 1_000
_NAMED = {"tools/call": "name"}


class HttpConnection:
    """Uses the newer protocol era if the server does, else begins a session for each credential."""

    def __init__(self, client: OutgoingClient, url: str, *, body_bytes: int) -> None:
        self._client = client
        self._url = url
        self._body_bytes = body_bytes
        self._modern: bool | None = None
        self._sessions: OrderedDict[str | None, str | None] = OrderedDict()
        self._numbers = itertools.count(1)

    async def ask(
        self, method: str, params: Mapping[str, Any], seconds: float, credential: str | None = None
    ) -> dict[str, Any]:
        """The result of a request. Raises ServerFault, ServerRefused."""
        await self._begin(credential)
        try:
            return await self._exchange(method, params, seconds, credential)
        except _SessionGone:
            self._sessions.pop(credential, None)
            await self._begin(credential)
            return await self._exchange(method, params, seconds, credential)

    async def close(self) -> None:
        """Forget all sessions; the next request starts over."""
        self._modern = None
        self._sessions.clear()

    async def _begin(self, credential: str | None) -> None:
        if self._modern is None:
            self._modern = await self._is_modern(credential)
        if self._modern or credential in self._sessions:
            return
        session: list[str | None] = []
        check_hello(await self._exchange("initialize", hello(), _PROBE, credential, session=session))
        self._sessions[credential] = session[0]
        if len(self._sessions) > _SESSIONS:
            self._sessions.popitem(last=False)
        await self._notify("notifications/initialized", credential)

    async def _is_modern(self, credential: str | None) -> bool:
        try:
            answer = await self._exchange("server/discover", {}, _PROBE, credential, modern=True)
        except (ServerRefused, _Rejected, _SessionGone):
            return False
        return MODERN in answer.get("supportedVersions", ())

    async def _exchange(
        self,
        method: str,
        params: Mapping[str, Any],
        seconds: float,
        credential: str | None,
        *,
        modern: bool | None = None,
        session: list[str | None] | None = None,
    ) -> dict[str, Any]:
        as_modern = bool(self._modern) if modern is None else modern
        message = request(next(self._numbers), method, params, modern=as_modern)
        headers = self._headers(credential, as_modern)
        if as_modern:
            headers |= _mirrored(message)
        limits = CallLimits(total_seconds=seconds, body_bytes=self._body_bytes)
        try:
            async with (
                asyncio.timeout(seconds),
                await self._client.call(
                    "POST", self._url, headers=headers, json=message, limits=limits
                ) as reply,
            ):
                if session is not None:
                    session.append(reply.headers.get("Mcp-Session-Id"))
                return result_of(await _answer(reply, message["id"]))
        except TimeoutError:
            raise ServerSlow(f"it did not answer within {seconds:g} s") from None
        except OutgoingError as error:
            raise ServerFault(f"{error}") from None

    async def _notify(self, method: str, credential: str | None) -> None:
        headers = self._headers(credential, modern=False)
        try:
            async with await self._client.call(
                "POST", self._url, headers=headers, json=notification(method), limits=CallLimits(_PROBE)
            ):
                pass
        except OutgoingError as error:
            raise ServerFault(f"{error}") from None

    def _headers(self, credential: str | None, modern: bool) -> dict[str, str]:
        headers = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": MODERN if modern else LEGACY,
        }
        if credential is not None:
            headers["Authorization"] = f"Bearer {credential}"
        session = self._sessions.get(credential)
        return headers if session is None else {**headers, "Mcp-Session-Id": session}


class _Rejected(ServerFault):
    """The server rejected the request itself."""


class _SessionGone(ServerFault):
    """The server no longer knows the session."""


def _mirrored(message: Mapping[str, Any]) -> dict[str, str]:
    """The values that the newer era repeats in headers."""
    headers = {"Mcp-Method": message["method"]}
    named = _NAMED.get(message["method"])
    if named is not None:
        name = message["params"][named]
        plain = name.isascii() and name.isprintable() and name == name.strip() and not name.startswith("=?")
        wrapped = f"=?base64?{base64.b64encode(name.encode()).decode()}?="
        headers["Mcp-Name"] = name if plain else wrapped
    return headers


async def _answer(reply: OutgoingReply, number: int) -> dict[str, Any]:
    """The message that answers a request. Raises ServerFault."""
    kind = reply.headers.get("Content-Type", "").partition(";")[0].strip()
    if reply.status in (401, 403):
        raise ServerDenied("it refuses the credential")
    if kind == "text/event-stream" and reply.status == 200:
        async for message in _events(reply):
            if message.get("id") == number and "method" not in message:
                return message
        raise ServerFault("it ended its stream without an answer")
    if kind == "application/json":
        message = read(await reply.read())
        if message.get("id") in (number, None) and ("result" in message or "error" in message):
            return message
    if reply.status == 404:
        raise _SessionGone("it does not know the address or the session (404)")
    raise _Rejected(f"it answered with status {reply.status} and no message")


async def _events(reply: OutgoingReply) -> AsyncGenerator[dict[str, Any], None]:
    """The messages of a stream of server-sent events."""
    rest, data = b"", list[bytes]()
    async for piece in reply.pieces():
        *lines, rest = (rest + piece).replace(b"\r\n", b"\n").split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif not line and data:
                joined, data = b"\n".join(data), []
                if joined.strip():
                    yield read(joined)
