"""What one plugin has declared, no other takes; the platform's own keep theirs, whoever is loaded first."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from kernel.offers import OFFERS
from kernel.plugins import Candidate, Plugin
from kernel.sdk import (
    AUTHENTICATED,
    PLUGIN_STATES,
    PUBLIC,
    Action,
    Context,
    HealthCheck,
    Job,
    Permission,
    Platform,
    RouteTable,
    Service,
    hookimpl,
)
from kernel.testing import Running, Start


class Nothing(BaseModel):
    """No arguments."""


async def work(platform: Platform, payload: Nothing) -> None:
    """Do nothing."""


async def check(platform: Platform) -> None:
    """Find nothing wrong."""


async def go(ctx: Context, parameters: Nothing) -> dict[str, Any]:
    """Do nothing."""
    return {}


def table_saying(word: str, path: str) -> RouteTable:
    table = RouteTable("Words")

    @table.get(path, access=PUBLIC, returns=str)
    async def say(ctx: Context) -> str:
        """Say the word."""
        return word

    return table


class Wares(Plugin):
    """Offers one of each; a subclass gives the name."""

    @hookimpl
    def register_routes(self) -> list[RouteTable]:
        return [table_saying(self.name, "/v1/wares")]


class Jobs(Plugin):
    @hookimpl
    def register_jobs(self) -> list[Job[Nothing]]:
        return [Job("wares.count", Nothing, work)]


class Permissions(Plugin):
    @hookimpl
    def register_permissions(self) -> list[Permission]:
        return [Permission("wares.sell", f"Sell, says {self.name}.", granted_to="user")]


class Services(Plugin):
    @hookimpl
    def register_services(self) -> list[Service]:
        return [Service("tts-stt", [table_saying(self.name, "/tts/wares")], "1")]


class Checks(Plugin):
    @hookimpl
    def register_health_checks(self) -> list[HealthCheck]:
        return [HealthCheck("wares", check)]


class Database(Plugin):
    """Its check would hide the platform's own."""

    name = "fine"

    @hookimpl
    def register_health_checks(self) -> list[HealthCheck]:
        return [HealthCheck("database", check)]


class Actions(Plugin):
    """Declares an action, `times` times."""

    times = 1

    @hookimpl
    def register_actions(self) -> list[Action]:
        return [Action("go", "Go.", Nothing, go, access=AUTHENTICATED) for _ in range(self.times)]


class Twice(Actions):
    name = "twice"
    times = 2


def named(kind: type[Plugin], name: str) -> type[Plugin]:
    return type(kind.__name__, (kind,), {"name": name})


def status_of(running: Running, name: str) -> tuple[str, str | None]:
    record = running.platform.resource(PLUGIN_STATES).records[name]
    return record.status, record.reason


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Wares, "GET /v1/wares is taken by 'zulu'; choose another path"),
        (Jobs, "its job 'wares.count' is already declared by 'zulu'; rename it"),
        (Permissions, "its permission 'wares.sell' is already declared by 'zulu'; rename it"),
        (Checks, "its health check 'wares' is already declared by 'zulu'; rename it"),
        (Services, "its service 'tts-stt' is already declared by 'zulu'; rename it"),
    ],
)
async def test_a_built_in_plugin_keeps_what_is_its_own(
    start_platform: Start, kind: type[Plugin], said: str
) -> None:
    """A stranger that is loaded earlier goes out of service: it neither stops the start nor takes a name."""
    own = Candidate("zulu", named(kind, "zulu"), "platform-kernel")
    running = await start_platform(own, Candidate("alpha", named(kind, "alpha"), "alpha-plugin"))
    assert status_of(running, "zulu") == ("loaded", None)
    assert status_of(running, "alpha") == ("failed", said)


async def test_the_kernel_keeps_what_is_its_own(start_platform: Start) -> None:
    """A check called as the kernel's would say that the database is well, whatever it is."""
    running = await start_platform(Database)
    reason = "its health check 'database' is already declared by 'kernel'; rename it"
    assert status_of(running, "fine") == ("failed", reason)


async def test_a_route_of_a_service_is_not_hidden(start_platform: Start) -> None:
    """A path below a service's prefix that the service itself serves belongs to the service."""
    table = table_saying("mine", "/v1/plugins")
    thief = type("Thief", (Plugin,), {"name": "thief", "register_routes": hookimpl(lambda self: [table])})
    thief.register_routes.__name__ = "register_routes"  # type: ignore[attr-defined]
    running = await start_platform("plugin_registry", thief)
    assert status_of(running, "thief") == (
        "failed",
        "GET /v1/plugins is taken by 'plugin_registry'; choose another path",
    )
    assert "plugins" in (await running.anonymous.get("/v1/plugins")).json()


async def test_an_action_is_declared_once(start_platform: Start) -> None:
    """Of a plugin's two actions with one name, one would silently win; plugins may share a name."""
    running = await start_platform(Twice, named(Actions, "once"), named(Actions, "other"))
    reason = "its action 'twice.go' is already declared by 'twice'; rename it"
    assert status_of(running, "twice") == ("failed", reason)
    assert set(running.platform.resource(OFFERS).actions) == {("once", "go"), ("other", "go")}
