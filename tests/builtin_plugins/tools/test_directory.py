"""Plugins that other plugins offer, and routes that they add to another plugin's service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar

from pydantic import BaseModel, Field

from builtin_plugins.tools.api import Directory, PluginEntry, PluginSource
from kernel.sdk import (
    AUTHENTICATED,
    PLUGIN_STATES,
    PUBLIC,
    Action,
    Context,
    Platform,
    Plugin,
    Rate,
    Resource,
    ResourceKey,
    RouteTable,
    Service,
    Settings,
    Unit,
    hookimpl,
)
from kernel.testing import Start


class Nothing(BaseModel):
    """No arguments."""


async def answer(_ctx: Context, _wanted: Nothing) -> str:
    return "here"


class Leaflets:
    """A source with one plugin in it."""

    name = "leaflet"

    def __init__(self) -> None:
        self.broken = False

    def schema(self) -> Mapping[str, Any]:
        return {}

    async def plugins(self) -> Sequence[PluginEntry]:
        if self.broken:
            raise RuntimeError("the leaflets burn")
        return [PluginEntry("spring-sale", "enabled", self.name)]

    async def actions(self, plugin: str) -> Sequence[Action]:
        offered = [
            Action("say", "Says it.", Nothing, answer, access=AUTHENTICATED),
            Action("shout", "Public, and not read-only.", Nothing, answer, access=PUBLIC),
        ]
        return offered if plugin == "spring-sale" else []

    async def install(self, document: bytes, media_type: str, *, update: bool) -> PluginEntry:
        raise AssertionError("nothing here installs, removes or refreshes")

    def remove(self, unit: Unit, plugin: str) -> bool:
        raise AssertionError("nothing here installs, removes or refreshes")

    async def refresh(self) -> None:
        raise AssertionError("nothing here installs, removes or refreshes")


LEAFLETS: ResourceKey[Any] = ResourceKey("leaflets")


class Publisher(Plugin):
    """Offers leaflets."""

    name = "publisher"

    def __init__(self) -> None:
        self.source = Leaflets()

    @hookimpl
    def register_resources(self) -> Sequence[Resource[Leaflets]]:
        return [Resource(LEAFLETS, self._open, frozenset({"api"}))]

    @asynccontextmanager
    async def _open(self, platform: Platform) -> AsyncIterator[Leaflets]:
        yield self.source

    @hookimpl
    def register_plugin_sources(self) -> Sequence[ResourceKey[PluginSource]]:
        return [LEAFLETS]


async def test_offered_plugins(start_platform: Start) -> None:
    """A source's plugins stand beside those of code, with their actions, and follow the switches."""
    platform = (await start_platform(Publisher)).platform
    directory = Directory(platform)
    assert [entry.name for entry in await directory.entries()] == [
        "accounts",
        "long_jobs",
        "publisher",
        "shared_counters",
        "spring-sale",
    ]
    assert [(plugin, action.name) for plugin, action in await directory.actions()] == [("spring-sale", "say")]
    assert await directory.action("spring-sale", "say") is not None
    assert await directory.action("spring-sale", "shout") is None  # an action that does not hold is left out
    assert await directory.action("publisher", "say") is None
    for off, status in (({"spring-sale"}, "disabled"), ({"publisher"}, "disabled"), ((), "enabled")):
        platform.resource(PLUGIN_STATES).switch_off(off)
        entry = await directory.entry("spring-sale")
        assert entry is not None and entry.status == status
        assert bool(await directory.action("spring-sale", "say")) == (status == "enabled")
    assert {"publisher", "kernel", "schema"} <= directory.taken_names()


async def test_a_process_that_does_not_open_it(start_platform: Start) -> None:
    """It has no plugins of that source, and says nothing wrong of those of code."""
    platform = (await start_platform(Publisher, role="worker")).platform
    entries = await Directory(platform).entries()
    assert [entry.name for entry in entries] == ["accounts", "long_jobs", "publisher", "shared_counters"]


async def test_source_that_raises(start_platform: Start) -> None:
    """A source that fails hides its own plugins alone, and /health still answers."""
    publisher = Publisher()
    running = await start_platform("tools", publisher)
    shown = (await running.anonymous.get("/health")).json()["plugins"]
    assert shown["spring-sale"] == {"status": "enabled", "reason": None}
    publisher.source.broken = True
    entries = await Directory(running.platform).entries()
    assert [entry.name for entry in entries] == [
        "accounts",
        "long_jobs",
        "publisher",
        "shared_counters",
        "tools",
    ]
    assert (await running.anonymous.get("/health")).status == 200


class StallSettings(Settings):
    """How often somebody may look."""

    env_prefix: ClassVar[str] = "STALL_"

    rate: int = Field(2, description="Looks per minute.")


async def look(_ctx: Context) -> str:
    """Look."""
    return "nothing new"


def stall(service: str) -> type[Plugin]:
    """A plugin that adds a route to a service."""
    routes = RouteTable("Stall", service=service)
    rate = Rate(lambda settings: settings.rate, settings=StallSettings)
    routes.get("/v1/tools/stall", access=PUBLIC, returns=str, rate=rate)(look)

    class Stall(Plugin):
        name = "stall"

        @hookimpl
        def register_settings(self) -> type[StallSettings]:
            return StallSettings

        @hookimpl
        def register_routes(self) -> Sequence[RouteTable]:
            return [routes]

    return Stall


class Market(Plugin):
    """Offers the service that the stall adds to."""

    name = "market"

    @hookimpl
    def register_services(self) -> Sequence[Service]:
        return [Service("plugin-registry", [], "1")]


async def test_route_added_to_a_service(start_platform: Start) -> None:
    """It is on the service's own port and under the gateway's mount, and in both documents."""
    for only in (None, "plugin-registry"):
        running = await start_platform("api_docs", Market, stall("plugin-registry"), only=only)
        assert (await running.anonymous.get("/v1/tools/stall")).json() == "nothing new"
        document = (await running.anonymous.get("/openapi.json")).json()
        assert "/v1/tools/stall" in document["paths"]


async def test_route_added_to_a_service_elsewhere(start_platform: Start) -> None:
    """Where the service lives on another machine, its routes are there, not here."""
    env = {"PLATFORM_SERVICE_URLS": "plugin-registry=http://127.0.0.1:9"}
    running = await start_platform("remote_services", Market, stall("plugin-registry"), env=env)
    assert (await running.anonymous.get("/v1/tools/stall")).status == 503


async def test_route_added_to_an_unknown_service(start_platform: Start) -> None:
    """A misspelt service refuses the plugin instead of losing its routes."""
    running = await start_platform(stall("plugin-registrar"))
    record = running.platform.resource(PLUGIN_STATES).records["stall"]
    assert record.status == "failed" and "plugin-registrar" in (record.reason or "")


async def test_rate_from_a_plugins_settings(start_platform: Start) -> None:
    """A route's own limit may come from its plugin's settings."""
    env = {"RATE_LIMIT_ENABLED": "true", "STALL_RATE": "3"}
    running = await start_platform(Market, stall("plugin-registry"), env=env)
    # A minute may turn over in the middle, which opens one more window.
    statuses = [(await running.anonymous.get("/v1/tools/stall")).status for _ in range(7)]
    assert statuses.count(200) in (3, 6) and statuses.count(429) == 7 - statuses.count(200)
