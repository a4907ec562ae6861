"""What a handler gets: the request, who sends it, and the platform it reaches."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy.ext.asyncio import AsyncSession

from kernel.auth.principals import ANONYMOUS, Principal

if TYPE_CHECKING:
    from kernel.db.engine import Unit
    from kernel.http.wire import Request
    from kernel.platform import Platform
    from kernel.resources import ResourceKey
    from kernel.settings import Settings

UNMATCHED = "__unmatched__"
NO_PARAMETERS: Mapping[str, str] = {}

T = TypeVar("T")
S = TypeVar("S", bound="Settings")


class Context:
    """One request on its way through the platform."""

    __slots__ = (
        "client_ip",
        "endpoint",
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
        self.match: Mapping[str, str] = NO_PARAMETERS

    def unit(self) -> AbstractAsyncContextManager[Unit]:
        """A unit of work: commits when its block ends, rolls back when it raises."""
        return self.platform.database.unit()

    def read(self) -> AbstractAsyncContextManager[AsyncSession]:
        """A session that only reads."""
        return self.platform.database.read()

    def resource(self, key: ResourceKey[T]) -> T:
        """An opened resource; raises Unavailable when its plugin did not open it."""
        return self.platform.resource(key)

    def settings_of(self, cls: type[S]) -> S:
        """A plugin's settings."""
        return self.platform.settings_of(cls)

    @property
    def bearer(self) -> str | None:
        """The caller's token as sent, for calls on the caller's behalf."""
        header = self.request.headers.get("Authorization", "")
        scheme, _, token = header.partition(" ")
        return token.strip() if scheme.lower() == "bearer" else None

    def audit_origin(self) -> dict[str, Any]:
        """Who and from where, for an audit entry."""
        return {
            "actor_id": self.principal.id,
            "ip_address": self.client_ip,
            "user_agent": _storable(self.request.headers.get("User-Agent", ""))[:255] or None,
        }


def _storable(header: str) -> str:
    """A header as text that can be stored: bytes that are no UTF-8 reach us as lone surrogates."""
    return header.encode(errors="surrogateescape").decode(errors="replace")
