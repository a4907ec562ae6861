"""Calls to registered services: only to checked addresses that the operator's list allows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from builtin_plugins.platform_ops.discovery.records import ServiceAddress
from builtin_plugins.platform_ops.settings import OpsSettings
from kernel.sdk import (
    OUTGOING,
    CallLimits,
    GatewayTimeout,
    OutgoingClient,
    OutgoingError,
    Platform,
    PlatformError,
    ResourceKey,
    Unavailable,
    Unprocessable,
    split_list,
)
from kernel.sdk.outgoing import CallTimedOut, DestinationRefused

_LIMITS = CallLimits(total_seconds=10, connect_seconds=5, body_bytes=256 * 1024)
_REMEDY = "an operator can name it in PLATFORM_SERVICES_ALLOWED"


class ServiceUnreachable(Unavailable):
    code = "service_unreachable"
    default_detail = "The service can't be reached"


class ServiceRefused(Unavailable):
    code = "service_not_allowed"
    default_detail = f"The service's address may not be called; {_REMEDY}"


class ServiceSilent(GatewayTimeout):
    code = "service_timeout"


class Calling:
    """The client for registered services, and which of them are trusted."""

    def __init__(self, client: OutgoingClient, trusted: frozenset[str]) -> None:
        self.client = client
        self._trusted = trusted

    def trusts(self, address: ServiceAddress) -> bool:
        """Whether a service gets the caller's token."""
        return str(address) in self._trusted

    def check(self, address: ServiceAddress) -> None:
        """Raise Unprocessable for an address that could never be called."""
        try:
            self.client.check(address.url("/"))
        except DestinationRefused as error:
            raise Unprocessable.field(("body", "host"), f"{error}; {_REMEDY}") from None


CALLING: ResourceKey[Calling] = ResourceKey("platform_ops.services")


@asynccontextmanager
async def open_calling(platform: Platform) -> AsyncIterator[Calling]:
    """Open the client of one process."""
    settings = platform.settings_of(OpsSettings)
    allowed, trusted = split_list(settings.services_allowed), split_list(settings.services_trusted)
    async with platform.resource(OUTGOING).client("services", within=allowed, limits=_LIMITS) as client:
        yield Calling(client, frozenset(item.lower() for item in trusted))


def as_platform_error(error: OutgoingError, name: str) -> PlatformError:
    """What went wrong with a call, in words for the caller."""
    if isinstance(error, DestinationRefused):
        return ServiceRefused(f"The address of '{name}' may not be called; {_REMEDY}")
    if isinstance(error, CallTimedOut):
        return ServiceSilent(f"'{name}' did not respond in time")
    return ServiceUnreachable(f"'{name}' is unreachable")
