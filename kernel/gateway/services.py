"""Services: applications with their own root, and where the gateway mounts them (spec 1, 4.5)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from yarl import URL

from kernel.http.context import ErrorFormat
from kernel.http.error_formats import OPENAI_ERRORS, PLAIN_ERRORS
from kernel.http.routes import RouteTable

if TYPE_CHECKING:
    from kernel.platform import Platform


@dataclass(frozen=True)
class Service:
    """A service that a plugin implements; its routes start at the service's root.

    `aliases` are more prefixes under which the service has the same routes (``/v1``). `health_extra` returns
    additional fields for its `/health`. `published` returns a port on which it is always served, beside the
    gateway's (0: a free one), as spec 1 requires for the web client; None if the settings ask for none.
    """

    name: str
    tables: Sequence[RouteTable]
    version: str
    aliases: tuple[str, ...] = ()
    health_extra: Callable[[Platform], Awaitable[dict[str, Any]]] | None = None
    title: str = ""
    published: Callable[[Platform], int | None] | None = None


@dataclass(frozen=True)
class Mount:
    """A public prefix of the gateway and the path on the service that it maps to.

    `gated`: writes need a token before anything is forwarded (spec 5.1 rule 6). `error_format`: the format of
    the gateway's own errors under the prefix; it may not know the routes of a service on another machine.
    """

    prefix: str
    target: str
    service: str
    methods: tuple[str, ...] = ("GET", "POST", "PUT", "DELETE", "PATCH")
    gated: bool = True
    exact: bool = False
    error_format: ErrorFormat = PLAIN_ERRORS

    def service_path(self, public: str) -> str | None:
        """The service's path for a public path; None if the mount does not cover it."""
        if public == self.prefix or public.startswith(self.prefix + "/"):
            if self.exact and public != self.prefix:
                return None
            return (self.target + public[len(self.prefix) :]) or "/"
        return None

    def target_of(self, public: URL) -> str:
        """The service's path and query for a matched address, in the client's spelling."""
        # However it was escaped, the prefix has the same number of segments.
        segments = self.prefix.count("/") + 1
        rest = public.raw_path.split("/", segments)[segments:]
        path = "/".join([self.target, *rest]) or "/"
        query = public.raw_query_string
        return path + (f"?{query}" if query else "")

    def public_path(self, service_path: str) -> str | None:
        """The public path of a service's route; None if the mount does not cover it."""
        target = self.target
        if self.exact:
            return self.prefix if service_path == (target or "/") else None
        if target and service_path != target and not service_path.startswith(target + "/"):
            return None
        rest = service_path[len(target) :]
        return self.prefix + ("" if rest == "/" else rest)


@dataclass(frozen=True)
class Slot:
    """One of the nine services: its name, its port, and whether its calls may take 300 s."""

    name: str
    port: int
    long: bool = False
    mounts: tuple[Mount, ...] = field(default=())


def _slot(name: str, port: int, *mounts: tuple[str, str, dict[str, Any]], long: bool = False) -> Slot:
    made = tuple(Mount(prefix, target, name, **options) for prefix, target, options in mounts)
    return Slot(name, port, long, made)


_READ = {"methods": ("GET",)}
_READ_POST = {"methods": ("GET", "POST")}

GATEWAY = "api-gateway"

SLOTS: tuple[Slot, ...] = (
    _slot(GATEWAY, 8000),
    _slot(
        "plugin-registry",
        8001,
        ("/v1/plugins", "/v1/plugins", {}),
        ("/v1/tools", "/v1/tools", _READ_POST),
        ("/v1/licensing", "/v1/licensing", {"methods": ("GET", "POST", "PATCH")}),
        ("/webhook", "/webhook", {"methods": ("POST",), "gated": False}),
    ),
    _slot(
        "marketplace",
        8002,
        ("/v1/marketplace", "/v1/marketplace", {}),
        ("/v1/graph", "/v1/graph", {}),
    ),
    _slot(
        "orchestrator",
        8003,
        ("/v1/ai", "/v1/ai", {**_READ_POST, "gated": False, "error_format": OPENAI_ERRORS}),
        long=True,
    ),
    _slot(
        "rag-pipeline",
        8004,
        ("/v1/rag", "", {}),
        ("/v1/conversations", "/v1/conversations", {}),
        long=True,
    ),
    _slot("model-management", 8005, ("/v1/models", "/models", {}), long=True),
    _slot(
        "tts-stt",
        8006,
        ("/v1/tts", "/tts", _READ_POST),
        ("/v1/stt", "/stt", _READ_POST),
        long=True,
    ),
    _slot("graph-rag", 8008, ("/v1/graph-rag", "/graph-rag", {}), long=True),
    _slot(
        "platform-ops",
        8010,
        ("/v1/bundles", "/v1/bundles", _READ_POST),
        ("/v1/containers", "/v1/containers", _READ),
        ("/v1/backups", "/v1/backups", _READ_POST),
        ("/v1/settings", "/v1/settings", _READ),
    ),
)


def slot_of(name: str) -> Slot | None:
    """The slot with this service name; None for an unknown name."""
    return next((slot for slot in SLOTS if slot.name == name), None)


def mount_of(path: str) -> Mount | None:
    """The mount that covers a public path; None for a path of the gateway's own."""
    mounts = (mount for slot in SLOTS for mount in slot.mounts)
    return next((mount for mount in mounts if mount.service_path(path) is not None), None)
