"""Services that plugins declare: where they answer and are listed, and when their plugin is refused."""

from __future__ import annotations

import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from kernel.gateway.services import Service, installed_services
from kernel.plugins.loading import Plugin
from kernel.sdk import PLUGIN_STATES, PUBLIC, Context, Mount, RouteTable, hookimpl
from kernel.testing import Start, eventually
from tests.fakes.processes import Served, free_port, served_platform, without_plugins

SECRET = {"JWT_SECRET": "a secret of at least thirty-two bytes, for tests"}
NAME = "lending-desk"
LOANS = [{"item": "a bicycle"}]


def environment(package: Path, **more: str) -> dict[str, str]:
    return {**SECRET, "PYTHONPATH": str(package), **without_plugins("api_docs", "remote_services"), **more}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk(
    lending_package: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Served, Served]]:
    """A gateway with the package installed, and the service on its port for development."""
    home, port = tmp_path_factory.mktemp("served") / "home", free_port()
    env = environment(lending_package, PLATFORM_DEV_PORTS="1", LENDING_PORT=str(port))
    async with served_platform(home, "--no-worker", env=env) as served:
        yield served, Served(served.process, f"http://127.0.0.1:{port}", served.session)


@pytest.fixture
def served(desk: tuple[Served, Served]) -> Served:
    return desk[0]


@pytest.mark.asyncio(loop_scope="module")
class TestStranger:
    async def test_under_its_prefix(self, served: Served) -> None:
        """Its routes, its own pages, and the rule that writes need a token."""
        assert await served.get("/v1/lending/loans") == (200, LOANS)
        status, health = await served.get("/v1/lending/health")
        assert (status, health["service"], health["checks"]["desk"]) == (200, NAME, "healthy")
        async with served.session.post(served.url + "/v1/lending/nowhere", json={}) as answer:
            assert answer.status == 401

    async def test_on_its_own_port(self, desk: tuple[Served, Served]) -> None:
        """The same at its own root, where `PLATFORM_DEV_PORTS` serves it."""
        _, alone = desk
        assert await alone.get("/loans") == (200, LOANS)
        _, document = await alone.get("/openapi.json")
        assert list(document["paths"]) == ["/loans"]

    async def test_it_is_listed(self, served: Served) -> None:
        """In the gateway's status, health and documents, after the platform's own services."""
        _, status = await served.get("/v1/status")
        entry = status["services"][-1]
        assert (entry["name"], entry["reachable"], entry["version"]) == (NAME, True, "1.0.0")
        _, health = await served.get("/health")
        assert health["checks"]["lending_desk"] == "healthy"
        _, document = await served.get("/openapi.json")
        assert set(document["paths"]["/v1/lending/loans"]) == {"get", "post"}
        async with served.session.get(served.url + "/docs") as answer:
            assert answer.status == 200

    async def test_a_part_of_its_prefix_is_refused(self, served: Served) -> None:
        """The second plugin of the package is out of service, and its prefix stays the desk's."""
        _, health = await served.get("/health")
        plugin = health["plugins"]["lending_branch"]
        assert plugin["status"] == "failed"
        for named in ("'lending-branch'", "/v1/lending/branch", "'lending-desk'"):
            assert named in plugin["reason"]
        assert (await served.get("/v1/lending/branch"))[0] == 404


async def test_on_another_machine(lending_package: Path, tmp_path: Path) -> None:
    """A process serves it alone, the gateway passes on to it and shows its state."""
    home, env = tmp_path / "home", environment(lending_package)
    async with served_platform(home, "--only", NAME, "--no-worker", env=env) as there:
        urls = f"{NAME}={there.url}"
        async with served_platform(home, "--no-worker", env={**env, "PLATFORM_SERVICE_URLS": urls}) as here:
            assert await here.get("/v1/lending/loans") == (200, LOANS)
            there.process.signal(signal.SIGTERM)
            await there.process.wait(20)
            assert (await here.get("/v1/lending/loans"))[0] == 503

            async def is_told() -> bool:  # its state is remembered for a moment
                _, health = await here.get("/health")
                return str(health["checks"]["lending_desk"]).startswith("unhealthy: ")

            await eventually(is_told)


def offering(*services: Service, routes: RouteTable | None = None, called: str = "stranger") -> type[Plugin]:
    class Offering(Plugin):
        name = called

        @hookimpl
        def register_services(self) -> list[Service]:
            return list(services)

        @hookimpl
        def register_routes(self) -> list[RouteTable]:
            return [] if routes is None else [routes]

    return Offering


def table(path: str) -> RouteTable:
    made = RouteTable("Words")

    @made.get(path, access=PUBLIC, returns=str)
    async def say(ctx: Context) -> str:
        """Say something."""
        return path

    return made


def shelf(*mounts: Any, name: str = "shelf", **more: Any) -> Service:
    return Service(name, [table("/books")], "1", mounts=mounts, **more)


@pytest.mark.parametrize(
    ("service", "named"),
    [
        (shelf("/v1/rag"), "'shelf' .* /v1/rag, .*'rag-pipeline' has /v1/rag"),
        (shelf("/v1/rag/x"), "'shelf' .* /v1/rag/x, .*'rag-pipeline' has /v1/rag"),
        (shelf("/v1"), "'shelf' .* /v1, "),
        (shelf("/v1/auth"), "'shelf' .* /v1/auth, .*'accounts'"),
        (shelf("/v1/jobs/x"), "'shelf' .* /v1/jobs/x, .*'long_jobs' has GET /v1/jobs/{job_id}"),
        (shelf("/health"), "'shelf' .* /health, .*'kernel' has GET /health"),
        (shelf("/v1/toys"), "'shelf' .* /v1/toys, .*'neighbour' has GET /v1/toys/bear"),
        (shelf("/v1/shelf", "/v1/shelf"), "'shelf' .* /v1/shelf twice"),
        (shelf("v1/shelf"), "'shelf' .*'v1/shelf'.*'/v1/shelf'"),
        (shelf("/v1/shelf", port=8004), "'shelf' .* port 8004 .*'rag-pipeline'"),
        (shelf("/v1/shelf", port=8000), "'shelf' .* port 8000 .*'api-gateway'"),
        (shelf("/v1/shelf", name="api-gateway"), "'api-gateway' .* name"),
        (shelf("/v1/shelf", name="My shelf"), "'My shelf' .* name"),
        (shelf("/v1/shelf", name="database"), "'database' .*'kernel'"),
        (shelf(), r"'shelf' .*mounts=\(\"/v1/shelf\",\)"),
    ],
)
async def test_what_is_refused(start_platform: Start, service: Service, named: str) -> None:
    """A prefix, port or name that is taken keeps the plugin out of service, with the reason."""
    neighbour = offering(routes=table("/v1/toys/bear"), called="neighbour")
    running = await start_platform(neighbour, offering(service))
    record = running.platform.resource(PLUGIN_STATES).records["stranger"]
    assert record.status == "failed" and re.search(named, record.reason or ""), record.reason
    assert (await running.anonymous.get("/v1/auth/capabilities")).status == 200


async def test_prefixes_beside_each_other(start_platform: Start) -> None:
    """Prefixes are compared by whole segments; a service may have several, one of which is another path."""
    mounts = ("/v1/rag-shelf", Mount("/v1/shelf/open", ""))
    plugin = offering(Service("shelf", [table("/books"), table("/v1/rag-shelf/a")], mounts=mounts))
    running = await start_platform(plugin)
    for path in ("/v1/shelf/open/books", "/v1/rag-shelf/a"):
        assert (await running.anonymous.get(path)).status == 200


async def test_a_service_whose_plugin_is_away(start_platform: Start) -> None:
    """Packages name their services by entry points, so that the gateway knows those that are not here."""
    running = await start_platform()
    for service in installed_services().values():
        answer = await running.anonymous.get(service.prefixes[0].prefix + "/x")
        assert answer.status in (405, 503), service.name
