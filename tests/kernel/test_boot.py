"""The start: what a plugin may do wrong, what it is told, and that the platform serves all the same."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from kernel.boot import open_platform
from kernel.errors import StartupError
from kernel.plugins.loading import Candidate, Plugin, direct_candidates, installed
from kernel.plugins.offers import OFFERS
from kernel.sdk import (
    PLUGIN_STATES,
    PUBLIC,
    Context,
    HealthCheck,
    Platform,
    Resource,
    ResourceKey,
    RouteTable,
    Service,
    Unhealthy,
    hookimpl,
    permission,
)
from kernel.sdk.operations import Opening, StartGuard
from kernel.settings.loading import SettingsLoader
from kernel.testing import Running, Start, environment


class Neighbour(Plugin):
    """A plugin that works, and must go on working."""

    name = "neighbour"

    @hookimpl
    def register_routes(self) -> list[RouteTable]:
        table = RouteTable("Neighbour")

        @table.get("/v1/neighbour", access=PUBLIC, returns=str)
        async def greet(ctx: Any) -> str:
            """Greet."""
            return "good morning"

        return [table]


def table_of(path: str, **options: Any) -> RouteTable:
    table = RouteTable("Strange")

    @table.get(path, **options)
    async def handler(ctx: Any, **_: Any) -> None:
        """Do nothing."""

    return table


async def reason_of(running: Running, name: str) -> str:
    """Why a plugin is out of service, as /health tells it, after checking that its neighbour serves."""
    assert (await running.anonymous.get("/v1/neighbour")).json() == "good morning"
    health = (await running.anonymous.get("/health")).json()
    assert health["status"] == "degraded"
    told = health["plugins"][name]
    assert told["status"] in ("failed", "refused")
    return str(told["reason"])


class Note(BaseModel):
    text: str = ""


async def taking_nothing() -> None: ...


async def taking_ctx(ctx: Context) -> None: ...


async def taking_body(ctx: Context, body: Note) -> None: ...


async def taking_name(ctx: Context, name: str) -> None: ...


class Declares(Plugin):
    """A plugin whose one declaration is given."""

    name = "strange"

    def __init__(self, hook: str, declare: Any) -> None:
        def declaring(_self: Any) -> Any:
            return declare()

        setattr(type(self), hook, hookimpl(declaring))


def declares(hook: str, declare: Any) -> Plugin:
    return type("Strange", (Declares,), {})(hook, declare)


def raising() -> Any:
    raise RuntimeError("the well is dry")


def raising_late() -> Iterator[Any]:
    yield from ()
    raise RuntimeError("the well is dry")


def leaving() -> Any:
    raise SystemExit("the well is dry")


class TestDeclarations:
    async def test_a_hook_that_exits(self, start_platform: Start) -> None:
        running = await start_platform(declares("register_routes", leaving), Neighbour)
        assert await reason_of(running, "strange") == "register_routes raised SystemExit: the well is dry"

    @pytest.mark.parametrize("declare", [raising, raising_late])
    @pytest.mark.parametrize(
        "hook",
        [
            "register_routes",
            "register_permissions",
            "register_resources",
            "register_jobs",
            "register_services",
        ],
    )
    async def test_a_hook_that_raises(self, start_platform: Start, hook: str, declare: Any) -> None:
        """A declaration that raises, at once or while it is read, takes out its plugin alone."""
        running = await start_platform(declares(hook, declare), Neighbour)
        assert await reason_of(running, "strange") == f"{hook} raised RuntimeError: the well is dry"

    async def test_a_hook_that_hangs(self, start_platform: Start) -> None:
        """A declaration that never returns is given up after the time limit."""
        import threading

        forever = threading.Event()
        strange = declares("register_permissions", forever.wait)
        running = await start_platform(strange, Neighbour, env={"PLATFORM_PLUGIN_START_TIMEOUT": "0.3"})
        assert "0.3 s" in await reason_of(running, "strange")
        forever.set()

    async def test_a_method_that_is_no_hook_is_not_called(self, start_platform: Start) -> None:
        running = await start_platform(declares("register_routes", lambda: None), Neighbour)
        assert running.platform.resource(PLUGIN_STATES).records["strange"].status == "loaded"


class TestRoutes:
    @pytest.mark.parametrize(
        ("table", "said"),
        [
            (table_of("/v1/strange"), "GET /v1/strange does not say who may use it"),
            (
                table_of("/v1/strange", access=permission("strange.use")),
                "'strange.use', which no plugin declares",
            ),
            (table_of("/v1/strange/{id:colour}", access=PUBLIC), "colour"),
            (table_of("/v1/strange/{id", access=PUBLIC), "write parameters as {name} or {name:type}"),
            (table_of("/v1/strange/{the-id}", access=PUBLIC), "write parameters as {name} or {name:type}"),
            (table_of("/v1/strange/{1st}", access=PUBLIC), "write parameters as {name} or {name:type}"),
            (table_of("/v1/strange/{id:[a-z]+}", access=PUBLIC), "write parameters as {name} or {name:type}"),
            (table_of("/v1/strange/{id}/{id}", access=PUBLIC), "two parameters have the same name"),
            (table_of("/v1/strange?of=all", access=PUBLIC), "'?', '#' and '%' can't be part of a path"),
            (table_of("/v1/str%61nge", access=PUBLIC), "'?', '#' and '%' can't be part of a path"),
            (table_of("v1/strange", access=PUBLIC), "must start with '/'"),
            (table_of("/v1/neighbour", access=PUBLIC), "GET /v1/neighbour is taken by 'neighbour'"),
            (table_of("/health", access=PUBLIC), "GET /health is taken by 'kernel'"),
            (table_of("/v1/strange", access=PUBLIC, body=7), "GET /v1/strange"),
            (
                table_of("/v1/strange/{id}", access=PUBLIC, fixed=True),
                "can't have fixed=True: it takes parameters",
            ),
            (
                table_of("/v1/strange", access=PUBLIC, errors=("NotFound",)),
                "GET /v1/strange has 'NotFound' in errors; list classes such as NotFound, or statuses",
            ),
            (table_of("/v1/strange", access=PUBLIC, status=999), "has status=999; it must be 200 to 399"),
            (table_of("/v1/strange", access=PUBLIC, rate=5), "has rate=5; write rate=Rate(5)"),
            (
                table_of("/v1/strange", access=PUBLIC, token_scopes=("reading",)),
                "has token_scopes=('reading',); it must be a list of 'ask', 'tools', 'manage'",
            ),
        ],
    )
    async def test_a_stranger_with_an_unfit_route(
        self, start_platform: Start, table: RouteTable, said: str
    ) -> None:
        """A route that does not fit refuses its plugin with the route's name; the platform starts."""
        running = await start_platform(Neighbour, declares("register_routes", lambda: [table]))
        assert said in await reason_of(running, "strange")
        assert (await running.anonymous.get("/health")).status == 200

    @pytest.mark.parametrize("method", ["get", "HEAD", "*"])
    async def test_a_method_that_is_none(self, start_platform: Start, method: str) -> None:
        """Other spellings would be routed without being compared with other plugins' routes."""
        table = RouteTable("Strange")
        table.route(method, "/v1/strange", access=PUBLIC)(taking_ctx)
        running = await start_platform(Neighbour, declares("register_routes", lambda: [table]))
        assert f"'{method}'" in await reason_of(running, "strange")

    async def test_a_handler_that_is_not_async(self, start_platform: Start) -> None:
        """A handler must be a coroutine function; one that is not is refused at start, not at a request."""
        table = RouteTable("Strange")
        table.get("/v1/strange", access=PUBLIC)(lambda ctx: None)  # type: ignore[arg-type,return-value]
        running = await start_platform(Neighbour, declares("register_routes", lambda: [table]))
        assert "async def" in await reason_of(running, "strange")

    @pytest.mark.parametrize(
        ("path", "options", "handler", "said"),
        [
            (
                "/v1/strange",
                {},
                taking_nothing,
                "take the context first: async def taking_nothing(ctx, …)",
            ),
            ("/v1/strange/{name}", {}, taking_ctx, "'taking_ctx' lacks the parameter 'name'"),
            ("/v1/strange", {"body": Note}, taking_ctx, "'taking_ctx' lacks the parameter 'body'"),
            ("/v1/strange", {"query": Note}, taking_body, "'taking_body' lacks the parameter 'query'"),
            ("/v1/strange", {}, taking_body, "takes 'body', which its decorator doesn't declare; add body="),
            ("/v1/strange/{id}", {}, taking_name, "'taking_name' lacks the parameter 'id'"),
            ("/v1/strange", {}, taking_name, "takes 'name', which its path doesn't contain; write {name}"),
        ],
    )
    async def test_a_handler_with_other_parameters(
        self, start_platform: Start, path: str, options: dict[str, Any], handler: Any, said: str
    ) -> None:
        """What a handler takes and what its route hands it are compared at the start, not at a request."""
        table = RouteTable("Strange")
        table.post(path, access=PUBLIC, **options)(handler)
        running = await start_platform(Neighbour, declares("register_routes", lambda: [table]))
        reason = await reason_of(running, "strange")
        assert said in reason
        assert f"POST {path} " in reason
        place = running.platform.resource(PLUGIN_STATES).records["strange"].place
        assert place == f"{__file__}:{handler.__code__.co_firstlineno}"

    async def test_a_built_in_plugin_without_access_stops_the_start(self, start_platform: Start) -> None:
        """The platform's own routes must name their access: the start fails and says which does not."""
        plugin = declares("register_routes", lambda: [table_of("/v1/strange")])
        own = Candidate("strange", lambda: plugin, "platform-kernel")
        with pytest.raises(StartupError, match="GET /v1/strange "):
            await start_platform(own)

    async def test_a_service_route_without_access(self, start_platform: Start) -> None:
        service = Service("tts-stt", [table_of("/tts")], "1")
        running = await start_platform(Neighbour, declares("register_services", lambda: [service]))
        assert "GET /tts " in await reason_of(running, "strange")

    async def test_a_service_of_a_taken_name(self, start_platform: Start) -> None:
        """The second plugin that offers a service is refused; the first one keeps it."""

        class First(Plugin):
            name = "first"

            @hookimpl
            def register_services(self) -> list[Service]:
                return [Service("tts-stt", [table_of("/tts", access=PUBLIC)], "1")]

        service = Service("tts-stt", [table_of("/tts", access=PUBLIC)], "2")
        running = await start_platform(Neighbour, First, declares("register_services", lambda: [service]))
        assert "'tts-stt'" in await reason_of(running, "strange")
        assert running.platform.resource(OFFERS).services["tts-stt"][0] == "first"


class Opens(Plugin):
    """A plugin with one resource."""

    name = "opens"
    key: ResourceKey[str] = ResourceKey("well")

    def __init__(self, open_it: Any) -> None:
        self.open_it = open_it

    @hookimpl
    def register_resources(self) -> list[Resource[str]]:
        return [Resource(self.key, self.open_it)]


class TestResources:
    async def test_an_open_that_raises(self, start_platform: Start) -> None:
        """A resource that can't be opened refuses its plugin, which needs it."""

        @asynccontextmanager
        async def open_it(platform: Any) -> AsyncIterator[str]:
            raise TimeoutError("the broker is slow")
            yield ""

        running = await start_platform(Opens(open_it), Neighbour)
        reason = await reason_of(running, "opens")
        assert reason == "opening 'well' failed: TimeoutError: the broker is slow"

    async def test_an_open_that_hangs(self, start_platform: Start) -> None:
        """A resource that never opens is given up after the time limit."""

        @asynccontextmanager
        async def open_it(platform: Any) -> AsyncIterator[str]:
            await asyncio.Event().wait()
            yield ""

        running = await start_platform(
            Opens(open_it), Neighbour, env={"PLATFORM_PLUGIN_START_TIMEOUT": "0.3"}
        )
        reason = await reason_of(running, "opens")
        assert "'well'" in reason and "0.3 s" in reason

    @pytest.mark.parametrize("fault", ["raise", "hang"])
    async def test_a_close_that_fails_closes_the_others(self, platform_home: Path, fault: str) -> None:
        """A resource that raises or hangs at its end keeps no other resource open."""
        closed = []

        @asynccontextmanager
        async def stubborn(platform: Any) -> AsyncIterator[str]:
            yield "water"
            if fault == "raise":
                raise RuntimeError("stuck")
            await asyncio.Event().wait()

        @asynccontextmanager
        async def tidy(platform: Any) -> AsyncIterator[str]:
            yield "water"
            closed.append("tidy")

        class Tidy(Opens):
            name = "tidy"

        loader = SettingsLoader(environment(platform_home, {"PLATFORM_PLUGIN_START_TIMEOUT": "0.3"}))
        async with open_platform(
            loader, role="api", candidates=direct_candidates([Tidy(tidy), Opens(stubborn)])
        ):
            assert closed == []
        assert closed == ["tidy"]

    async def test_resources_close_in_reverse_order(self, platform_home: Path) -> None:
        """What was opened last is closed first, and all of it while the database still answers."""
        seen: list[str] = []

        def opening(name: str) -> Any:
            @asynccontextmanager
            async def open_it(platform: Any) -> AsyncIterator[str]:
                seen.append(f"open {name}")
                yield name
                await platform.database.ping()
                seen.append(f"close {name}")

            return open_it

        class Second(Opens):
            name = "second"
            requires = ("opens",)

        loader = SettingsLoader(environment(platform_home))
        candidates = direct_candidates([Second(opening("second")), Opens(opening("first"))])
        async with open_platform(loader, role="api", candidates=candidates):
            pass
        assert seen == ["open first", "open second", "close second", "close first"]


class TestOnStart:
    async def test_fewer_arguments_than_specified(self, start_platform: Start) -> None:
        """`on_start` may leave out its argument, as every hook may."""
        called = []

        class Terse(Plugin):
            name = "terse"

            @hookimpl
            def on_start(self) -> None:
                called.append("terse")

        running = await start_platform(Terse)
        assert called == ["terse"]
        assert running.platform.resource(PLUGIN_STATES).records["terse"].status == "loaded"

    @pytest.mark.parametrize("wanted", [True, False])
    async def test_a_slow_one(
        self,
        start_platform: Start,
        caplog: pytest.LogCaptureFixture,
        monkeypatch: pytest.MonkeyPatch,
        wanted: bool,
    ) -> None:
        """The log warns of it, unless operators ask for it."""
        monkeypatch.setattr("kernel.plugins.starting.SLOW", -1)

        class Slow(Plugin):
            name = "slow"
            may_start_slowly = wanted

            @hookimpl
            async def on_start(self) -> None: ...

        caplog.set_level("INFO", "platform.plugins")
        await start_platform(Slow)
        (told,) = [record for record in caplog.records if "slow: on_start took" in record.getMessage()]
        assert told.levelname == ("INFO" if wanted else "WARNING")

    @pytest.mark.parametrize("error", [RuntimeError, SystemExit])
    async def test_one_that_raises(self, start_platform: Start, error: type[BaseException]) -> None:
        """A plugin that fails at its last step is out of service, with its routes."""

        class Late(Plugin):
            name = "late"

            @hookimpl
            def register_routes(self) -> list[RouteTable]:
                return [table_of("/v1/late", access=PUBLIC)]

            @hookimpl
            async def on_start(self, platform: Any) -> None:
                raise error("no license")

        running = await start_platform(Late, Neighbour)
        assert "no license" in await reason_of(running, "late")
        assert (await running.anonymous.get("/v1/late")).status == 404


class TestEssential:
    async def test_an_essential_plugin_stops_the_start(self, start_platform: Start) -> None:
        plugin = declares("register_routes", raising)
        plugin.essential = True
        with pytest.raises(StartupError, match=r"'strange'.*the well is dry"):
            await start_platform(plugin)

    async def test_also_when_a_requirement_fails(self, start_platform: Start) -> None:
        """An essential plugin whose requirement fails stops the start too."""

        class Needed(Plugin):
            name = "needed"
            essential = True
            requires = ("strange",)

        with pytest.raises(StartupError, match="'needed'"):
            await start_platform(declares("register_routes", raising), Needed)

    async def test_nobody_disables_one(self, start_platform: Start) -> None:
        """The operator's list can't name one: the start says which, and where it stands."""
        plugin = declares("register_routes", raising)
        plugin.essential = True
        with pytest.raises(StartupError, match=r"'strange'.*PLATFORM_PLUGINS_DISABLED"):
            await start_platform(plugin, env={"PLATFORM_PLUGINS_DISABLED": "strange"})

    @pytest.mark.parametrize("name", sorted(one.name for one in installed() if one.essential))
    async def test_nobody_disables_a_built_in_one(self, name: str, start_platform: Start) -> None:
        with pytest.raises(StartupError, match=rf"'{name}'.*PLATFORM_PLUGINS_DISABLED"):
            await start_platform(name, env={"PLATFORM_PLUGINS_DISABLED": name})

    async def test_one_that_cannot_be_imported(self, start_platform: Start) -> None:
        """What is essential is known beforehand: a failing import stops the start."""

        def load() -> Any:
            raise ImportError("no such module")

        with pytest.raises(StartupError, match=r"'strange'.*no such module"):
            await start_platform(Candidate("strange", load, essential=True))


class TestHealthChecks:
    @pytest.mark.parametrize(
        ("critical", "status", "code"), [(True, "unhealthy", 503), (False, "degraded", 200)]
    )
    async def test_a_check_that_fails(
        self, start_platform: Start, critical: bool, status: str, code: int
    ) -> None:
        """A failing critical check makes the platform unhealthy, an optional one degraded."""

        async def check(_platform: Platform) -> None:
            raise Unhealthy("the well is dry; dig")

        checks = [HealthCheck("well", check, critical=critical)]
        running = await start_platform(declares("register_health_checks", lambda: checks))
        answer = await running.anonymous.get("/health")
        assert (answer.status, answer.json()["status"]) == (code, status)
        assert answer.json()["checks"]["well"] == "unhealthy: the well is dry; dig"

    async def test_a_check_that_raises_something_else(
        self, start_platform: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A driver's text may hold an address or a password: the error's type is shown, the rest logged."""

        async def check(_platform: Platform) -> None:
            raise OSError("can't reach amqp://me:hunter22@host")

        running = await start_platform(
            declares("register_health_checks", lambda: [HealthCheck("well", check)])
        )
        assert (await running.anonymous.get("/health")).json()["checks"]["well"] == "unhealthy: OSError"
        assert "OSError: can't reach amqp://" in caplog.text


async def test_what_another_start_has_settled(
    start_platform: Start, database_url: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """A start that waits to be alone, as for a restore, says so, and ends once another process has done what
    it waits for, though that one stays in service.
    """
    ordered, seen = asyncio.Event(), asyncio.Event()

    async def waits(_opening: Opening) -> bool:
        if ordered.is_set():
            seen.set()
        return ordered.is_set()

    async def nothing(*_: Any) -> None:
        return None

    guard = declares("register_start_guards", lambda: [StartGuard(waits, nothing, nothing)])
    env = {"DATABASE_URL": database_url}
    await start_platform(guard, env=env)
    ordered.set()
    second = asyncio.ensure_future(start_platform(guard, env=env))
    await seen.wait()
    ordered.clear()
    async with asyncio.timeout(30):
        await second
    assert caplog.text.count("waiting for other processes") == 1


async def test_home_is_private(start_platform: Start, platform_home: Path) -> None:
    """Nobody but the owner can look into the home folder, where secrets and the database are."""
    await start_platform()
    assert _mode(platform_home) == 0o700


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)
