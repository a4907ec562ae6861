"""What a handler gets: the request, its sender and the sender's address, and the platform."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from aiohttp import hdrs, web
from pydantic import BaseModel
from sqlalchemy.orm import Session

from kernel.auth.audit import Origin
from kernel.auth.callers import Caller
from kernel.auth.principals import ANONYMOUS, Principal
from kernel.http.downloads import Validators, send_file
from kernel.libs.names import content_disposition
from kernel.settings.checks import split_list

if TYPE_CHECKING:
    from kernel.db.engine import Unit
    from kernel.errors import PlatformError
    from kernel.http.wire import Request
    from kernel.platform import Platform
    from kernel.plugins.resource_keys import ResourceKey
    from kernel.settings.loading import Settings

_FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Real-IP", "Via")


class ClientAddresses:
    """Believes `X-Forwarded-For` only from `TRUSTED_PROXY_CIDRS`."""

    def __init__(self, cidrs: str) -> None:
        self._networks = [ipaddress.ip_network(item, strict=False) for item in split_list(cidrs)]

    def of(self, request: web.Request) -> str:
        """The sender's address: the last hop that is not a trusted proxy."""
        peer = request.remote or "unknown"
        if not self._networks or not self._trusted(peer):
            return peer
        hops = [
            hop.strip() for value in request.headers.getall("X-Forwarded-For", ()) for hop in value.split(",")
        ]
        for hop in reversed(hops):
            if _address(hop) is None:
                return peer
            peer = hop
            if not self._trusted(hop):
                return hop
        return peer

    def trusts(self, request: web.Request) -> bool:
        """Whether the peer is a configured proxy."""
        return self._trusted(request.remote or "")

    def is_near(self, request: web.Request) -> bool:
        """Whether the sender is on this machine, or the peer is a configured proxy.

        A request that was forwarded comes from elsewhere, even if the proxy is on this machine.
        """
        if self.trusts(request):
            return True
        forwarded = any(name in request.headers for name in _FORWARDED)
        address = _address(request.remote or "")
        return address is not None and address.is_loopback and not forwarded

    def _trusted(self, text: str) -> bool:
        address = _address(text)
        return address is not None and any(address in network for network in self._networks)


def network_of(address: str) -> str:
    """The network by which an address is counted: one IPv6 client may use any address of its /64."""
    if ":" not in address:
        return address
    try:
        parsed = ipaddress.IPv6Address(address)
    except ValueError:
        return address
    return address if parsed.ipv4_mapped else str(ipaddress.IPv6Network((int(parsed), 64), strict=False))


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


UNMATCHED = "__unmatched__"
NO_PARAMETERS: Mapping[str, str] = {}

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound="Settings")


@dataclass(frozen=True)
class ErrorFormat:
    """How a route's errors are formatted for the clients of a protocol.

    `respond` makes the response. `body` is the model of its content, `invalid` that of a 422. With
    `of_family`, it also answers for paths that don't exist but begin with the same two segments.
    """

    respond: Callable[[Context, PlatformError], web.Response]
    body: type[BaseModel]
    invalid: type[BaseModel]
    of_family: bool = False


class Context:
    """One request on its way through the platform, as passed to handlers."""

    __slots__ = (
        "client_ip",
        "endpoint",
        "error_format",
        "match",
        "platform",
        "principal",
        "request",
        "request_id",
    )

    def __init__(self, platform: Platform, request: Request, request_id: str, client_ip: str) -> None:
        self.platform = platform
        self.request = request
        self.request_id = request_id
        self.client_ip = client_ip
        self.principal: Principal = ANONYMOUS
        self.endpoint = UNMATCHED
        self.error_format: ErrorFormat | None = None
        self.match: Mapping[str, str] = NO_PARAMETERS

    def read(
        self, fn: Callable[Concatenate[Session, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, T]:
        """Run the plain function `fn(session, …)`, which only reads; see `Database.read`."""
        return self.platform.database.read(fn, *args, **kwargs)

    async def write(self, fn: Callable[Concatenate[Unit, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the plain function `fn(unit, …)` in one transaction; see `Database.write`."""
        return await self.platform.database.write(fn, *args, **kwargs)

    def resource(self, key: ResourceKey[T]) -> T:
        """A resource that is open. Raises Unavailable if its plugin could not open it."""
        return self.platform.resource(key)

    def settings_of(self, cls: type[S]) -> S:
        """A plugin's settings."""
        return self.platform.settings_of(cls)

    async def send_file(
        self, path: Path, filename: str, *, sha256: str | None = None, modified: datetime | None = None
    ) -> web.StreamResponse:
        """Answer with a stored file as a download under this name, or with the part that the client asks for.

        It is never shown inline, whatever its type. For a file of the blob store, give its hash and the time
        since which the caller has it: the file's own time would reveal when anybody first stored these bytes.
        Raises RangeNotSatisfiable, PreconditionFailed, NotFound, and ValueError for a hash without a time or
        a time without a hash.
        """
        if (sha256 is None) != (modified is None):
            raise ValueError("send_file takes 'sha256' and 'modified' together")
        headers = _download(filename, "application/octet-stream")
        validators = Validators(sha256, modified) if sha256 is not None and modified is not None else None
        return await send_file(self.request, path, headers, validators)

    async def show_file(self, path: Path) -> web.StreamResponse:
        """Answer with a public file of a package, of the type that its name says, to be shown inline."""
        return await send_file(self.request, path, {})

    async def start_download(self, filename: str, media_type: str) -> web.StreamResponse:
        """Begin a download that is written piece by piece; the caller ends it with `write_eof`."""
        response = web.StreamResponse(headers=_download(filename, media_type))
        await response.prepare(self.request)
        return response

    @property
    def network(self) -> str:
        """The client's network, for counting: its IPv4 address, or the /64 network of its IPv6 address."""
        return network_of(self.client_ip)

    @property
    def bearer(self) -> str | None:
        """The caller's token as sent, for calls on behalf of the caller."""
        header = self.request.headers.get("Authorization", "")
        scheme, _, token = header.partition(" ")
        return token.strip() if scheme.lower() == "bearer" else None

    @property
    def caller(self) -> Caller:
        """The sender of the request, for a service that decides, changes or audits."""
        return Caller(self.platform, self.principal, self.audit_origin())

    def audit_origin(self) -> Origin:
        """The sender and its address, for an audit entry."""
        return {
            "actor_id": self.principal.id,
            "ip_address": self.client_ip,
            "user_agent": _storable(self.request.headers.get("User-Agent", ""))[:255] or None,
        }


CONTEXT: web.RequestKey[Context] = web.RequestKey("context", Context)
"""A request's context, for middlewares: `request[CONTEXT]`."""


def _download(filename: str, media_type: str) -> dict[str, str]:
    """Headers of a download. Caches must revalidate: the file may be unshared, or the next reader another."""
    return {
        hdrs.CONTENT_TYPE: media_type,
        hdrs.CONTENT_DISPOSITION: content_disposition(filename),
        hdrs.CACHE_CONTROL: "private, no-cache",
    }


def _storable(header: str) -> str:
    """A header as storable text: bytes that aren't UTF-8 arrive as lone surrogates."""
    return header.encode(errors="surrogateescape").decode(errors="replace")
