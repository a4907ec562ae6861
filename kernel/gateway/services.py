"""Services: applications with their own root, which plugins declare and the gateway mounts (spec 1, 4.5)."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Protocol

from aiohttp import web
from yarl import URL

from kernel.errors import ANY_ERROR, Unauthorized
from kernel.http.context import Context, ErrorFormat
from kernel.http.error_formats import PLAIN_ERRORS
from kernel.http.routes import WRITES, RouteTable
from kernel.plugins.resource_keys import ResourceKey

if TYPE_CHECKING:
    from kernel.platform import Platform

log = logging.getLogger("platform.services")

GATEWAY = "api-gateway"
GATEWAY_PORT = 8000
GROUP = "platform.services"
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)+")
_METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH")


@dataclass(frozen=True)
class Mount:
    """A public prefix of the gateway and the path on the service that it maps to; by default, the same.

    `gated`: writes need a token before anything is forwarded (spec 5.1 rule 6). `counts`: the service itself
    limits the requests that have no token, so that no burst is lost to the gateway's limit. `error_format`:
    the format of the gateway's own errors under the prefix; it may not know the routes of a service on
    another machine.
    """

    prefix: str
    target: str | None = None
    methods: tuple[str, ...] = _METHODS
    gated: bool = True
    counts: bool = False
    error_format: ErrorFormat = PLAIN_ERRORS

    @property
    def root(self) -> str:
        """The path on the service; empty for its root."""
        return self.prefix if self.target is None else self.target

    def covers(self, public: str) -> bool:
        """Whether a public path is at or below the prefix."""
        return public == self.prefix or public.startswith(self.prefix + "/")

    def require_token_for_writes(self, ctx: Context) -> None:
        """The write gate of spec 5.1 rule 6, for requests that the gateway passes on. Raises Unauthorized."""
        if self.gated and ctx.request.method in WRITES and ctx.principal.kind == "anonymous":
            raise Unauthorized()

    def target_of(self, public: URL) -> str:
        """The service's path and query for a matched address, in the client's spelling."""
        # However it was escaped, the prefix has the same number of segments.
        segments = self.prefix.count("/") + 1
        rest = public.raw_path.split("/", segments)[segments:]
        path = "/".join([self.root, *rest]) or "/"
        query = public.raw_query_string
        return path + (f"?{query}" if query else "")

    def public_path(self, service_path: str) -> str | None:
        """The public path of a service's route; None if the mount does not cover it."""
        root = self.root
        if root and service_path != root and not service_path.startswith(root + "/"):
            return None
        rest = service_path[len(root) :]
        return self.prefix + ("" if rest == "/" else rest)


@dataclass(frozen=True)
class Service:
    """A service that a plugin implements; the routes of its `tables` start at the service's root.

    `mounts` are its public prefixes; a string stands for a prefix that the service's own paths have, too.
    `port` is where `PLATFORM_DEV_PORTS` serves it. Calls may take 300 s if it is `long`, else 30 s. From
    the `critical_phase` of `PLATFORM_PHASE` on, the platform is unhealthy while the service is.

    `aliases` are more prefixes under which the service has the same routes (``/v1``). `health_extra` returns
    additional fields for its `/health`. `published` returns a port on which it is always served, beside the
    gateway's (0: a free one), as spec 1 requires for the web client; None if the settings ask for none.

    A package may also name a service without its tables as an entry point in the group `platform.services`.
    The gateway then knows the service while its plugin is disabled, and for another machine. The plugin's own
    declaration may leave out what the entry point says (`mounts`, `port`, `long`, `critical_phase`, `title`).
    """

    name: str
    tables: Sequence[RouteTable] = ()
    version: str = "0"
    aliases: tuple[str, ...] = ()
    health_extra: Callable[[Platform], Awaitable[dict[str, Any]]] | None = None
    title: str = ""
    published: Callable[[Platform], int | None] | None = None
    mounts: tuple[Mount | str, ...] = ()
    port: int | None = None
    long: bool = False
    critical_phase: int | None = None

    @property
    def prefixes(self) -> tuple[Mount, ...]:
        """The mounts, strings spelled out."""
        return tuple(Mount(item) if isinstance(item, str) else item for item in self.mounts)

    def completed(self, base: Service | None) -> Service:
        """This declaration, with what an entry point says of the service where this one says nothing."""
        if base is None or self.mounts or self.port:
            return self
        return replace(
            self,
            mounts=base.mounts,
            port=base.port,
            long=base.long,
            critical_phase=base.critical_phase,
            title=self.title or base.title,
        )


def installed_services() -> dict[str, Service]:
    """The services that installed packages name as entry points. A broken one is reported and left out."""
    services: dict[str, Service] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            service = point.load()
        except ANY_ERROR as error:  # boundary: third-party code
            log.warning("the service '%s' can't be read: %s: %s", point.name, type(error).__name__, error)
            continue
        if not isinstance(service, Service):
            log.warning("the service '%s' is a %s and not a Service", point.name, type(service).__name__)
            continue
        problem = declaration_problem(service, services)
        if problem is None:
            services[service.name] = service
        else:
            log.warning("the service '%s' is left out: %s", service.name, problem)
    return services


def declaration_problem(service: Service, known_services: Mapping[str, Service]) -> str | None:
    """What is wrong with a declaration beside the `known_services`, to complete "its service …"."""
    if service.name == GATEWAY:
        return "has the gateway's name; rename it"
    if not _NAME.fullmatch(service.name):
        return "has an odd name; use a-z, 0-9 and '-'"
    if not (service.mounts or service.port or service.published):
        return f'can\'t be reached; add its public prefix: mounts=("/v1/{service.name}",)'
    others = [other for other in known_services.values() if other.name != service.name]
    if service.port is not None:
        port_owner = next((other.name for other in others if other.port == service.port), None)
        port_owner = GATEWAY if service.port == GATEWAY_PORT else port_owner
        if port_owner is not None:
            return f"wants the port {service.port} of '{port_owner}'; choose another port"
    return next(filter(None, (_mount_problem(mount, service, others) for mount in service.prefixes)), None)


def _mount_problem(mount: Mount, service: Service, others: Iterable[Service]) -> str | None:
    if not _PREFIX.fullmatch(mount.prefix):
        return f"has the prefix '{mount.prefix}'; write it as in '/v1/{service.name}'"
    if [other.prefix for other in service.prefixes].count(mount.prefix) > 1:
        return f"has the prefix {mount.prefix} twice"
    for other in others:
        for theirs in other.prefixes:
            if theirs.covers(mount.prefix) or mount.covers(theirs.prefix):
                return f"wants {mount.prefix}, but '{other.name}' has {theirs.prefix}; choose another prefix"
    return None


def in_order(services: Iterable[Service]) -> list[Service]:
    """Services that have public prefixes, by port; those without a port come last, by name."""
    return sorted((s for s in services if s.mounts), key=lambda s: (s.port is None, s.port or 0, s.name))


def mount_of(path: str, services: Iterable[Service]) -> Mount | None:
    """The mount that covers a public path; None for a path of the gateway's own."""
    mounts = (mount for service in services for mount in service.prefixes)
    return next((mount for mount in mounts if mount.covers(path)), None)


class RemoteServices(Protocol):
    """The services that live on other machines; a plugin opens them as the resource `REMOTE_SERVICES`."""

    @property
    def names(self) -> Collection[str]:
        """The services that are elsewhere."""
        ...

    async def forward(self, ctx: Context, service: Service, mount: Mount) -> web.StreamResponse:
        """Pass the request on and answer with the service's response."""
        ...

    async def fetch_health(self, name: str, seconds: float) -> dict[str, Any]:
        """The body of a service's own `/health`. Raises Unhealthy when it can't be read."""
        ...


REMOTE_SERVICES: ResourceKey[RemoteServices] = ResourceKey("services_on_other_machines")
