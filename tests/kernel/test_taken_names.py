"""What one plugin has declared, no other takes; the platform's own keep theirs, whoever is loaded first."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from kernel.plugins.loading import Candidate, Plugin
from kernel.plugins.offers import OFFERS
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


def table_taking(path: str, service: str | None = None) -> RouteTable:
    """A route that answers with its own path, whatever the path's parameters."""
    table = RouteTable("Words", service=service)

    @table.get(path, access=PUBLIC, returns=str)
    async def take(ctx: Context, **parts: str) -> str:
        """Say which path this is."""
        return path

    return table


def serving(called: str, *tables: RouteTable) -> type[Plugin]:
    class Serving(Plugin):
        name = called

        @hookimpl
        def register_routes(self) -> list[RouteTable]:
            return list(tables)

    return Serving


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


def status_of(running: Running, name: str) -> tuple[str, str]:
    record = running.platform.resource(PLUGIN_STATES).records[name]
    return record.status, record.reason or ""


@pytest.mark.parametrize(
    ("kind", "taken"),
    [
        (Wares, "GET /v1/wares"),
        (Jobs, "job 'wares.count'"),
        (Permissions, "permission 'wares.sell'"),
        (Checks, "health check 'wares'"),
        (Services, "service 'tts-stt'"),
    ],
)
async def test_a_built_in_plugin_keeps_what_is_its_own(
    start_platform: Start, kind: type[Plugin], taken: str
) -> None:
    """A stranger that is loaded earlier goes out of service: it neither stops the start nor takes a name."""
    own = Candidate("zulu", named(kind, "zulu"), "platform-kernel")
    running = await start_platform(own, Candidate("alpha", named(kind, "alpha"), "alpha-plugin"))
    assert status_of(running, "zulu") == ("loaded", "")
    status, reason = status_of(running, "alpha")
    assert (status, taken in reason, "'zulu'" in reason) == ("failed", True, True)


async def test_the_kernel_keeps_what_is_its_own(start_platform: Start) -> None:
    """A check with the name of the kernel's would hide that the database is away."""
    status, reason = status_of(await start_platform(Database), "fine")
    assert (status, "'database'" in reason, "'kernel'" in reason) == ("failed", True, True)


async def test_a_route_of_a_service_is_not_hidden(start_platform: Start) -> None:
    """A path below a service's prefix that the service itself serves belongs to the service."""
    running = await start_platform("plugin_registry", serving("thief", table_taking("/v1/plugins")))
    status, reason = status_of(running, "thief")
    assert (status, "'plugin_registry'" in reason, "GET /v1/plugins " in reason) == ("failed", True, True)
    assert "plugins" in (await running.anonymous.get("/v1/plugins")).json()


@pytest.mark.parametrize(
    ("path", "service", "hidden"),
    [
        ("/v1/plugins/{rest:path}", None, "GET /v1/plugins/schema"),
        ("/v1/plugins/acme", None, "GET /v1/plugins/{name}"),
        ("/v1/{kind}/acme", None, None),
        ("/v1/plugins/acme/{rest:path}", None, "GET /v1/plugins/{name}/health"),
        ("/v1/plugins/{name}/{rest}", None, "GET /v1/plugins/ai/tools"),
        ("/v1/plugins/acme/health", "plugin-registry", "GET /v1/plugins/{name}/health"),
        ("/v1/plugins/{rest:path}", "plugin-registry", None),
        ("/v1/plugins/acme/drawings", None, None),
        ("/v1/jobs/{rest:path}", None, None),
        ("/v1/jobs/acme", None, "GET /v1/jobs/{job_id}"),
        ("/v1/auth/users/acme", None, None),
        ("/{rest:path}", None, None),
    ],
)
async def test_a_pattern_hides_no_route_of_another_plugin(
    start_platform: Start, path: str, service: str | None, hidden: str | None
) -> None:
    """A stranger's path that would serve requests for the platform's routes keeps it out of service; one that
    matches only what is left over may stay. Either way, the platform's routes answer.
    """
    thief = serving("thief", table_taking(path, service))
    running = await start_platform("plugin_registry", thief)
    owner = "long_jobs" if "/jobs/" in path else "plugin_registry"
    status, reason = status_of(running, "thief")
    assert status == ("failed" if hidden else "loaded")
    if hidden:
        assert f"GET {path} " in reason and f"{hidden} of '{owner}'" in reason
    for own in ("/v1/plugins/plugin_registry", "/v1/plugins/acme/health", "/v1/jobs/acme", "/livez"):
        assert (await running.anonymous.get(own)).json() != path


async def test_a_pattern_and_the_rest_of_its_paths_have_one_owner(start_platform: Start) -> None:
    """One plugin may serve an item by one route, and everything below it by another."""
    tables = (table_taking("/v1/shelves/{name}"), table_taking("/v1/shelves/{rest:path}"))
    running = await start_platform(serving("shelves", *tables))
    assert status_of(running, "shelves") == ("loaded", "")
    assert (await running.anonymous.get("/v1/shelves/a")).json() == "/v1/shelves/{name}"
    assert (await running.anonymous.get("/v1/shelves/a/b")).json() == "/v1/shelves/{rest:path}"


async def test_an_action_is_declared_once(start_platform: Start) -> None:
    """Of a plugin's two actions with one name, one would silently win; plugins may share a name."""
    running = await start_platform(Twice, named(Actions, "once"), named(Actions, "other"))
    status, reason = status_of(running, "twice")
    assert (status, "'twice.go'" in reason) == ("failed", True)
    assert set(running.platform.resource(OFFERS).actions) == {("once", "go"), ("other", "go")}
