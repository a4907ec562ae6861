"""The client for all of the platform's calls to other servers."""

from __future__ import annotations

import logging
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import aiohttp
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from kernel import __version__
from kernel.libs.outgoing.destinations import CheckedResolver, Destinations
from kernel.libs.outgoing.errors import (
    AnswerBroken,
    AnswerTooLarge,
    CallFailed,
    CallTimedOut,
    DestinationRefused,
    FailedStep,
    OutgoingError,
)
from kernel.libs.outgoing.turns import StreamTurns
from kernel.observe.metrics import Metrics
from kernel.observe.tracing import Attributes, Span, Tracing, note_error
from kernel.plugins.resource_keys import ResourceKey

log = logging.getLogger("platform.outgoing")

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_SECRET_HEADERS: Final = frozenset({"authorization", "cookie", "proxy-authorization"})
_BODY_HEADERS: Final = frozenset({"content-type", "content-length"})
_NAMES_SECONDS: Final = 10

Body: TypeAlias = str | bytes | AsyncIterable[bytes] | None


@dataclass(frozen=True)
class CallLimits:
    """Limits of one call: seconds overall (None: no limit), to connect, and without data; bytes of the
    decompressed body; the number of redirects to follow. Each redirect is checked like the first address.
    """

    total_seconds: float | None = 30
    connect_seconds: float = 10
    silence_seconds: float | None = None
    body_bytes: int = 1024 * 1024
    redirects: int = 0


@dataclass(frozen=True)
class OutgoingCall:
    """A call that has ended, for tracing. It contains no path, query, header or body."""

    client: str
    method: str
    host: str
    status: int | None
    seconds: float
    error: str | None


Trace = Callable[[OutgoingCall], None]


class OutgoingReply:
    """A response whose headers have arrived. Use ``async with``; leaving early closes the connection."""

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        limits: CallLimits,
        turns: StreamTurns,
        ended: Callable[[str | None], None],
    ) -> None:
        self._response = response
        self._limits = limits
        self._turns = turns
        self._ended = ended
        self._error: str | None = None
        self.status = response.status
        self.headers: CIMultiDictProxy[str] = response.headers
        self.url = str(response.url)

    async def __aenter__(self) -> OutgoingReply:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        self.close()

    async def pieces(self, most: int | None = None) -> AsyncGenerator[bytes, None]:
        """The decompressed body as it arrives, at most `most` bytes or the limit, whichever is less.

        Raises CallTimedOut, AnswerBroken, AnswerTooLarge.
        """
        host, size = self._response.url.host or "", 0
        limit = self._limits.body_bytes if most is None else min(most, self._limits.body_bytes)
        try:
            with _translated(host, answering=True):
                async for piece in self._response.content.iter_any():
                    size += len(piece)
                    if size > limit:
                        raise AnswerTooLarge(host, limit)
                    await self._turns.take()
                    yield piece
        except OutgoingError as error:
            self._error = type(error).__name__
            raise

    async def read(self, most: int | None = None) -> bytes:
        """The whole body. Raises as `pieces` does."""
        return b"".join([piece async for piece in self.pieces(most)])

    def close(self) -> None:
        """Keep the connection for the next call if the response was read to its end, otherwise close it.

        Closing tells the server that nobody wants the rest.
        """
        if self._response.content.at_eof():
            self._response.release()
        else:
            self._response.close()
        self._ended(self._error)


class OutgoingClient:
    """Calls servers within its allowed destinations. No cookies, no proxies, and no redirects by default."""

    def __init__(
        self,
        name: str,
        destinations: Destinations,
        limits: CallLimits,
        turns: StreamTurns,
        trace: Trace,
        tracing: Tracing,
    ) -> None:
        self._name = name
        self._destinations = destinations
        self._limits = limits
        self._turns = turns
        self._trace = trace
        self._tracing = tracing
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                resolver=CheckedResolver(destinations), ttl_dns_cache=_NAMES_SECONDS, limit=0
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": f"Platform/{__version__}"},
            trust_env=False,
        )

    def check(self, url: str) -> None:
        """Raise DestinationRefused for an address that may not be called, as far as DNS isn't needed."""
        self._destinations.check(_parsed(url))

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()

    async def call(
        self,
        method: str,
        url: str | URL,
        *,
        headers: Mapping[str, str] | None = None,
        json: Any = None,
        body: Body = None,
        limits: CallLimits | None = None,
    ) -> OutgoingReply:
        """Send a request. Returns when the headers of the response have arrived, whatever its status.

        A `URL` is sent as written, and a body that is an async iterable piece by piece. Raises
        DestinationRefused, CallFailed, CallTimedOut, AnswerBroken.
        """
        limits = limits or self._limits
        request = _Request(method, _parsed(url), CIMultiDict(headers or {}), json, body)
        span = self._tracing.begin(method, "client", _attributes(self._name, method, request.url))
        request.headers.update(span.carried)
        started = time.perf_counter()

        def tell(host: str, status: int | None, error: str | None) -> None:
            seconds = time.perf_counter() - started
            self._trace(OutgoingCall(self._name, method, host, status, seconds, error))
            _end(span, status, error)

        try:
            response = await self._follow(request, limits)
        except OutgoingError as error:
            tell(request.url.host or "", None, type(error).__name__)
            raise
        except BaseException as error:  # cancelled, or invalid input
            note_error(span, error)
            span.end()
            raise
        host, status = response.url.host or "", response.status
        return OutgoingReply(response, limits, self._turns, lambda error: tell(host, status, error))

    async def _follow(self, request: _Request, limits: CallLimits) -> aiohttp.ClientResponse:
        for _ in range(limits.redirects):
            response = await self._send(request, limits)
            place = response.headers.get("Location")
            if response.status not in _REDIRECTS or place is None:
                return response
            response.close()
            request = request.redirected(response.status, place)
        return await self._send(request, limits)

    async def _send(self, request: _Request, limits: CallLimits) -> aiohttp.ClientResponse:
        self._destinations.check(request.url)
        with _translated(request.url.host or "", answering=False):
            return await self._session.request(
                request.method,
                request.url,
                headers=request.headers,
                json=request.json,
                data=request.body,
                timeout=aiohttp.ClientTimeout(
                    total=limits.total_seconds,
                    sock_connect=limits.connect_seconds,
                    sock_read=limits.silence_seconds,
                ),
                allow_redirects=False,
            )


@dataclass(frozen=True)
class _Request:
    """The request to send, to the first address or to a redirect's."""

    method: str
    url: URL
    headers: CIMultiDict[str]
    json: Any
    body: Body

    def redirected(self, status: int, place: str) -> _Request:
        """The redirected request (RFC 9110 section 15.4); secrets are sent only to their own origin."""
        url = self.url.join(_parsed(place))
        if self.url.scheme == "https" and url.scheme != "https":
            raise DestinationRefused(f"{self.url.host} redirects from https:// to an address without TLS")
        dropped = _SECRET_HEADERS if url.origin() != self.url.origin() else frozenset[str]()
        if status in (307, 308) or self.method in ("GET", "HEAD"):
            return _Request(self.method, url, self._without(dropped), self.json, self.body)
        return _Request("GET", url, self._without(dropped | _BODY_HEADERS), None, None)

    def _without(self, dropped: frozenset[str]) -> CIMultiDict[str]:
        return CIMultiDict(
            (name, value) for name, value in self.headers.items() if name.lower() not in dropped
        )


class Outgoing:
    """Makes clients, each with destinations of its own besides those that the operator allows for all.

    Raises ValueError for a wrong entry of `allowed`.
    """

    def __init__(self, allowed: Iterable[str], metrics: Metrics, tracing: Tracing) -> None:
        self._allowed = tuple(allowed)
        self._tracing = tracing
        Destinations(allowed=self._allowed)
        self._turns = StreamTurns()
        self._durations = metrics.histogram(
            "outgoing_call_duration_seconds", "Duration of calls to other servers.", ("client", "outcome")
        )

    @asynccontextmanager
    async def client(
        self,
        name: str,
        *,
        named: Iterable[str] = (),
        hosts: Iterable[str] | None = None,
        within: Iterable[str] | None = None,
        limits: CallLimits | None = None,
        trace: Trace | None = None,
    ) -> AsyncIterator[OutgoingClient]:
        """A client for use within the block; see `Destinations` for `named`, `hosts` and `within`.

        `trace` is called after each call, in addition to metrics and log.
        """

        def note(call: OutgoingCall) -> None:
            self._note(call)
            if trace is not None:
                trace(call)

        destinations = Destinations(named, self._allowed, hosts, within)
        client = OutgoingClient(name, destinations, limits or CallLimits(), self._turns, note, self._tracing)
        try:
            yield client
        finally:
            await client.close()

    def _note(self, call: OutgoingCall) -> None:
        outcome = call.error or f"{(call.status or 0) // 100}xx"
        self._durations.labels(call.client, outcome).observe(call.seconds)
        log.debug("%s: %s %s: %s, %.3f s", call.client, call.method, call.host, outcome, call.seconds)


def _attributes(client: str, method: str, url: URL) -> Attributes:
    """Attributes by OpenTelemetry's conventions for HTTP clients; only the origin of the address."""
    return {
        "http.request.method": method,
        "url.scheme": url.scheme,
        "server.address": url.host or "",
        "server.port": url.port or 0,
        "platform.client": client,
    }


def _end(span: Span, status: int | None, error: str | None) -> None:
    span.set("http.response.status_code", status)
    if error is not None or (status or 0) >= 400:
        span.fail(error or str(status))
    span.end()


OUTGOING: ResourceKey[Outgoing] = ResourceKey("outgoing calls")


def _parsed(url: str | URL) -> URL:
    try:
        parsed = url if isinstance(url, URL) else URL(url)
        _ = parsed.host  # fails only now for a name that can't be decoded (xn--…)
    except ValueError:
        raise DestinationRefused("the address of the call is malformed") from None
    return parsed


def _step(error: Exception) -> FailedStep:
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "name"
    return "tls" if isinstance(error, aiohttp.ClientSSLError) else "connection"


@contextmanager
def _translated(host: str, *, answering: bool) -> Iterator[None]:
    """Turn the library's errors into ours: its texts may contain addresses and secrets."""
    try:
        yield
    except aiohttp.ConnectionTimeoutError:
        raise CallTimedOut(host, connecting=True) from None
    except TimeoutError:
        raise CallTimedOut(host) from None
    except (aiohttp.ClientConnectionError, aiohttp.InvalidURL) as error:
        if answering:
            raise AnswerBroken(f"{host} ended its response early") from None
        raise CallFailed(f"{host} can't be reached ({type(error).__name__})", _step(error)) from None
    except (aiohttp.ClientError, ValueError) as error:
        raise AnswerBroken(f"{host} sent an unreadable response ({type(error).__name__})") from None
