"""Servers that answer in JSON, page by page, to one credential or to an access token (RFC 6749)."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias
from urllib.parse import urlencode

from aiohttp import hdrs
from yarl import URL

from builtin_plugins.sources.calling import ABSENT, BUSY, call_server, clock_difference, item_pieces
from builtin_plugins.sources.protocol import (
    CredentialRefused,
    ItemFault,
    ItemUnsuitable,
    ItemVanished,
    ListingIncomplete,
    SourceFault,
    SourceMisplaced,
    SourceThrottled,
    SourceUnreachable,
)
from kernel.sdk import CallLimits, OutgoingClient, OutgoingError, OutgoingReply

_ANSWER: Final = CallLimits(total_seconds=120, silence_seconds=60, body_bytes=64 * 1024 * 1024)
_CONTENT: Final = CallLimits(total_seconds=None, silence_seconds=60, body_bytes=2**40, redirects=5)
_LONGEST_REASON: Final = 200
_JSON: Final = "application/json"
_ERROR_BYTES: Final = 64 * 1024
_EMPTY_PAGES: Final = 500
"""How many pages in a row may be empty: servers that filter late answer some."""
_MOST_SKEW: Final = 60.0
"""Seconds: a token that is signed here may be refused because of a larger difference of clocks."""
_EARLY: Final = 60.0
"""Seconds before its end at which a token is replaced."""

Authorize: TypeAlias = Callable[[bool], Awaitable[Mapping[str, str]]]
"""The headers of a call; True: those before were refused."""


def constant_headers(headers: Mapping[str, str]) -> Authorize:
    """A credential that is always the same."""

    async def authorize(_is_refused: bool) -> Mapping[str, str]:
        return headers

    return authorize


class JsonApi:
    """The routes of one server. `name` is what messages call it.

    `busy` are the reasons for which it answers 403 although it only wants to be asked later.
    """

    def __init__(
        self, client: OutgoingClient, name: str, authorize: Authorize, busy: Collection[str] = ()
    ) -> None:
        self._client = client
        self._name = name
        self._authorize = authorize
        self._busy = busy

    async def call(
        self,
        url: URL,
        limits: CallLimits = _ANSWER,
        *,
        method: str = "GET",
        sent: bytes | None = None,
        media_type: str = _JSON,
    ) -> OutgoingReply:
        """The answer, whatever its status; a refused token is replaced once. Raises SourceFault."""
        described: dict[str, str] = {} if sent is None else {hdrs.CONTENT_TYPE: media_type}
        headers = {**await self._authorize(False), **described}
        reply = await call_server(self._client, method, url, limits, headers, sent)
        if reply.status != 401:
            return reply
        fresh = {**await self._authorize(True), **described}
        if fresh == headers:
            return reply
        reply.close()
        return await call_server(self._client, method, url, limits, fresh, sent)

    async def read(self, url: URL, *, method: str = "GET", body: object = None) -> Any:
        """What it answers; None if that is not there. Raises SourceFault, `RouteRefused` for a 403."""
        sent = None if body is None else json.dumps(body).encode()
        async with await self.call(url, method=method, sent=sent) as reply:
            if reply.status in ABSENT:
                return None
            if reply.status != 200:
                raise await self._fault_of(reply)
            try:
                return json.loads(await reply.read())
            except (OutgoingError, ValueError):
                raise ListingIncomplete(f"{self._name} did not send a whole answer") from None

    async def exchange(self, url: URL, sent: bytes, media_type: str) -> tuple[bytes, str]:
        """The bytes that a POST of others answers, and their media type. Raises SourceFault."""
        async with await self.call(url, method="POST", sent=sent, media_type=media_type) as reply:
            if reply.status != 200:
                raise await self._fault_of(reply)
            try:
                return await reply.read(), reply.headers.get(hdrs.CONTENT_TYPE, "")
            except OutgoingError:
                raise ListingIncomplete(f"{self._name} did not send a whole answer") from None

    def answer_of(self, status: int, body: Any) -> Any:
        """The answer to one of several requests that were sent together, if it is one.

        Raises RouteAbsent, RouteRefused, SourceThrottled, SourceFault.
        """
        if status in ABSENT:
            raise RouteAbsent("It is not there")
        if status in BUSY:
            raise SourceThrottled(30)
        if status != 200:
            raise self._fault(status, *reason_in(body))
        return body

    async def _fault_of(self, reply: OutgoingReply) -> SourceFault:
        return self._fault(reply.status, *await reason_of(reply))

    def _fault(self, status: int, reason: str, text: str) -> SourceFault:
        message = f"{self._name} answered {status}{f' ({text})' if text else ''}"
        if status == 403 and reason in self._busy:
            return SourceThrottled(30)
        if status == 401:
            return CredentialRefused(f"{self._name} refuses the credential; it may have expired")
        if status == 403:
            return RouteRefused(message)
        if status >= 500:
            return SourceUnreachable(message)
        return SourceMisplaced(message)

    @asynccontextmanager
    async def content(
        self, url: URL, lasting: Mapping[str, str] | None = None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The bytes of an item. `lasting` says by the code of an error why there is nothing to read.

        Raises ItemFault, SourceFault.
        """
        async with await self.call(url, _CONTENT) as reply:
            if reply.status in ABSENT:
                raise ItemVanished("It was deleted since it was listed")
            if reply.status == 401:
                raise CredentialRefused(f"{self._name} refuses the credential; it may have expired")
            if reply.status != 200:
                reason, text = await reason_of(reply)
                if reply.status == 403 and reason in self._busy:
                    raise SourceThrottled(30)
                if reason in (lasting or {}):
                    raise ItemUnsuitable((lasting or {})[reason])
                raise ItemFault(f"{self._name} answered {reply.status}{f' ({text})' if text else ''}")
            yield item_pieces(reply)


class RouteRefused(CredentialRefused):
    """The credential is good, but not for this (403)."""


class RouteAbsent(SourceMisplaced):
    """What was asked for is not there (404, 410)."""


async def reason_of(reply: OutgoingReply) -> tuple[str, str]:
    """The code and the text of an error, both empty if there are none."""
    try:
        answer = json.loads(await reply.read(_ERROR_BYTES))
    except (OutgoingError, ValueError):
        return "", ""
    return reason_in(answer)


def reason_in(answer: Any) -> tuple[str, str]:
    """The same of an answer that was read."""
    error: Any = answer.get("error", answer) if isinstance(answer, dict) else {}
    if not isinstance(error, dict):  # RFC 6749, section 5.2
        error = {"code": error, "message": answer.get("error_description")}
    listed = error.get("errors")
    first = listed[0] if isinstance(listed, list) and listed and isinstance(listed[0], dict) else {}
    text = " ".join(str(error.get("message") or "").split())
    return str(first.get("reason") or error.get("code") or ""), text[:_LONGEST_REASON]


def link_of(text: object, *, is_encoded: bool = False) -> URL:
    """A link of an answer; `is_encoded`: it is sent back as it came. Raises ListingIncomplete."""
    try:
        return URL(str(text), encoded=is_encoded)
    except ValueError:
        raise ListingIncomplete("The server names a next page that is no address") from None


class BearerToken:
    """A token that its server gives for some time for a form of RFC 6749; asked for when it is needed."""

    def __init__(
        self, client: OutgoingClient, name: str, url: URL, form: Callable[[], Mapping[str, str]]
    ) -> None:
        self._client = client
        self._name = name
        self._url = url
        self._form = form
        self._token = ""
        self._ends = 0.0

    async def headers(self, is_refused: bool) -> Mapping[str, str]:
        """The header with a token. Raises CredentialRefused, SourceFault."""
        if is_refused or not self._token or time.monotonic() > self._ends:
            await self._renew()
        return {hdrs.AUTHORIZATION: f"Bearer {self._token}"}

    async def _renew(self) -> None:
        headers: dict[str, str] = {hdrs.CONTENT_TYPE: "application/x-www-form-urlencoded"}
        body = urlencode(self._form()).encode()
        async with await call_server(self._client, "POST", self._url, _ANSWER, headers, body) as reply:
            if reply.status >= 500:
                raise SourceUnreachable(f"{self._name} gives no token now (it answered {reply.status})")
            if reply.status != 200:
                code, text = await reason_of(reply)
                apart = clock_difference(reply) or 0.0
                clocks = f" (the clocks are {abs(apart):.0f} s apart)" if abs(apart) > _MOST_SKEW else ""
                raise CredentialRefused(
                    f"{self._name} gives no token: {text or code or reply.status}{clocks}"
                )
            try:
                answer = json.loads(await reply.read())
                self._token, seconds = str(answer["access_token"]), float(answer.get("expires_in", 0))
            except (OutgoingError, ValueError, LookupError, TypeError):
                raise SourceUnreachable(f"{self._name} gives no token that can be read") from None
        self._ends = time.monotonic() + max(0.0, seconds - _EARLY)


async def entries_of(
    api: JsonApi,
    url: URL,
    key: str,
    following: Callable[[URL, Any], URL | None],
    *,
    may_lack: bool = False,
    first: Any = None,
) -> AsyncGenerator[Mapping[str, Any], None]:
    """The entries of all pages from this one on, whose answer may be known (`first`); `following` says where
    the next is.

    `may_lack`: the server leaves out an empty list. Raises RouteAbsent, SourceFault, and ListingIncomplete
    for an answer without entries, pages in a circle, or empty ones without an end.
    """
    visited, page, empty = set[URL](), url, 0
    while True:
        visited.add(page)
        answer = await api.read(page) if first is None else first
        first = None
        if answer is None and page == url:
            raise RouteAbsent(f"There is nothing at {url.with_query(None)}")
        entries = answer.get(key, [] if may_lack else None) if isinstance(answer, dict) else None
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise ListingIncomplete("A page of the answer is not understood, so nothing of it counts")
        for entry in entries:
            yield entry
        after = following(page, answer)
        if after is None:
            return
        empty = 0 if entries else empty + 1
        if after in visited or empty == _EMPTY_PAGES:
            raise ListingIncomplete("The server lists the same page again and again")
        page = after
