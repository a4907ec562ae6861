"""Collecting, analysis and the health of plugins that behave, and of those that hang, fail and block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from builtin_plugins.plugin_registry.collecting.jobs import COLLECT_ALL
from builtin_plugins.plugin_registry.collecting.watching import HEALTH_WATCH
from kernel.plugins.loading import Candidate
from kernel.sdk import BadGateway, HealthCheck, NoPayload, Platform, Plugin, Unhealthy, Unit, hookimpl
from kernel.testing import Actor, Running, eventually, platforms, postgres_database
from tests.fakes.own_clock import OwnClock

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Gatherer(Plugin):
    """Collects shells, and does at its collection what it is told to."""

    name = "gatherer"

    def __init__(self) -> None:
        self.mode = "good"
        self.runs = 0
        self.ill = False
        self.released = threading.Event()

    @hookimpl
    async def collect_data(self, platform: Platform) -> Mapping[str, Any]:
        self.runs += 1
        if self.mode == "hang":
            released = self.released  # the next test makes another
            while not released.is_set():  # and will not be cancelled
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(0.05)
        if self.mode == "refuse":
            raise BadGateway("The beach is closed")
        if self.mode == "crash":
            raise RuntimeError("password=hunter2")
        return {"shells": 3, "weight": float("nan")}

    @hookimpl
    def analyze_data(self) -> Mapping[str, Any]:
        if self.mode == "hang":
            self.released.wait()
        if self.mode == "crash":
            raise RuntimeError("password=hunter2")
        return {"mean": 1.5, "by": {"kind": ["cockle"]}}

    @hookimpl
    def register_health_checks(self) -> list[HealthCheck]:
        return [HealthCheck("beach", self._check)]

    async def _check(self, platform: Platform) -> None:
        if self.ill:
            raise Unhealthy("the tide is in")


class Idle(Plugin):
    """Neither collects nor analyses."""

    name = "idle"


def _broken() -> Any:
    raise ImportError("no module named 'nowhere'")


@pytest.fixture(scope="module")
def gatherer() -> Gatherer:
    return Gatherer()


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["sqlite", "postgresql"])
async def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, gatherer: Gatherer
) -> AsyncIterator[Running]:
    """A platform with plugins of each kind."""
    env = {"PLATFORM_REGISTRY_COLLECT_TIMEOUT": "0.2", "PLATFORM_REGISTRY_ANALYSIS_TIMEOUT": "0.2"}
    home = tmp_path_factory.mktemp("gatherer")
    plugins = ("plugin_registry", gatherer, Idle(), Candidate("broken", _broken))
    async with platforms(home) as start:
        if request.param == "sqlite":
            yield await start(*plugins, env=env)
            return
        with postgres_database() as url:
            yield await start(*plugins, env={**env, "DATABASE_URL": url})


@pytest_asyncio.fixture(loop_scope="module")
async def ann(running: Running, gatherer: Gatherer) -> AsyncIterator[Actor]:
    """Somebody signed in, before a plugin that behaves again; afterwards nothing of it hangs."""
    gatherer.mode, gatherer.runs, gatherer.ill = "good", 0, False
    gatherer.released = threading.Event()
    yield await running.user()
    gatherer.released.set()


COLLECT = "/v1/plugins/gatherer/collect"


async def test_collecting(running: Running, ann: Actor, gatherer: Gatherer) -> None:
    """It runs in the background, once however often it is asked for; what the plugin says is kept."""
    first, second = await ann.post(COLLECT), await ann.post(COLLECT)
    assert (first.status, second.status) == (202, 202)
    told = first.json()
    assert (told["plugin"], told["status"], told["triggered_by"]) == (
        "gatherer",
        "collecting",
        ann.user["username"],
    )
    assert second.json()["job_id"] == told["job_id"]
    assert (await ann.get(COLLECT)).json()["status"] == "collecting"
    await running.run_jobs()
    found = (await ann.get(COLLECT)).json()
    assert (found["status"], found["result"], found["error"]) == ("done", {"shells": 3, "weight": None}, None)
    assert gatherer.runs == 1
    assert (await ann.get(f"/v1/jobs/{told['job_id']}")).json()["status"] == "done"
    assert (await ann.post(COLLECT)).json()["job_id"] != told["job_id"]
    await running.run_jobs()
    assert gatherer.runs == 2


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("hang", "0.2 s"),
        ("refuse", "The beach is closed"),
        ("crash", "failed"),
    ],
)
async def test_collections_that_fail(
    running: Running, ann: Actor, gatherer: Gatherer, mode: str, why: str
) -> None:
    """The job ends, the reason is public, what was collected before is kept, and it can be asked again."""
    assert (await ann.post(COLLECT)).status == 202
    await running.run_jobs()
    gatherer.mode = mode
    job_id = (await ann.post(COLLECT)).json()["job_id"]
    await running.run_jobs()
    found = (await ann.get(COLLECT)).json()
    assert (found["status"], found["result"]["shells"], why in found["error"]) == ("failed", 3, True)
    assert (await ann.get(f"/v1/jobs/{job_id}")).json()["error"] == found["error"]
    gatherer.mode = "good"
    assert (await ann.post(COLLECT)).status == 202
    await running.run_jobs()
    assert (await ann.get(COLLECT)).json()["status"] == "done"


async def test_every_hour(running: Running, ann: Actor, gatherer: Gatherer) -> None:
    """The clock collects for each plugin that can, beside one that was asked for already."""
    await ann.post(COLLECT)

    def tick(unit: Unit) -> str:
        return unit.enqueue(COLLECT_ALL, NoPayload())

    assert COLLECT_ALL.schedule == "@hourly"
    await running.platform.database.write(tick)
    await running.run_jobs()
    assert gatherer.runs in (1, 2)
    assert (await ann.get("/v1/plugins/idle/collect")).status == 404


async def test_a_cancelled_collection(running: Running, ann: Actor, gatherer: Gatherer) -> None:
    """Whoever asked may cancel it; the next request begins again."""
    job_id = (await ann.post(COLLECT)).json()["job_id"]
    assert (await ann.post(f"/v1/jobs/{job_id}/cancel")).status == 202
    await running.run_jobs()
    assert gatherer.runs == 0
    assert (await ann.get(COLLECT)).json()["status"] == "failed"
    assert (await ann.post(COLLECT)).json()["job_id"] != job_id
    await running.run_jobs()


async def test_who_and_what(running: Running, ann: Actor) -> None:
    """401 without a token; 404 for an unknown plugin; 400 if it is off or collects nothing; 503 if broken."""
    assert (await running.anonymous.post(COLLECT)).status == 401
    admin = await running.user(role="admin")
    for name, collecting, analysing in (("nobody", 404, 404), ("idle", 400, 404), ("broken", 503, 503)):
        assert (await ann.post(f"/v1/plugins/{name}/collect")).status == collecting
        assert (await ann.get(f"/v1/plugins/{name}/analysis")).status == analysing
    assert (await admin.post("/v1/plugins/gatherer/disable")).status == 200
    try:
        assert (await ann.post(COLLECT)).status == 400
        assert (await ann.get("/v1/plugins/gatherer/analysis")).status == 403
    finally:
        assert (await admin.post("/v1/plugins/gatherer/enable")).status == 200


async def test_analysis(running: Running, ann: Actor, gatherer: Gatherer) -> None:
    """Verbatim; one that blocks is left behind and one that fails says nothing of why."""
    path = "/v1/plugins/gatherer/analysis"
    answer = await ann.get(path)
    assert (answer.status, answer.json()) == (200, {"mean": 1.5, "by": {"kind": ["cockle"]}})
    gatherer.mode = "hang"
    blocked, other = await asyncio.gather(ann.get(path), ann.get("/v1/plugins/idle"))
    assert (blocked.status, other.status) == (504, 200)
    gatherer.mode = "crash"
    failed = await ann.get(path)
    assert failed.status == 503 and "hunter2" not in failed.body.decode()


async def test_health_is_remembered(running: Running, ann: Actor, gatherer: Gatherer) -> None:
    """A record shows what the last look found, and since when it has been so."""
    watch = running.platform.resource(HEALTH_WATCH)
    await watch.look()
    first = (await ann.get("/v1/plugins/gatherer")).json()
    await watch.look()
    second = (await ann.get("/v1/plugins/gatherer")).json()
    assert (first["health_status"], second["health_status"]) == ("healthy", "healthy")
    assert second["health_changed_at"] == first["health_changed_at"]
    assert _time(second["last_health_check"]) > _time(first["last_health_check"])
    gatherer.ill = True
    await watch.look()
    listed = (await ann.get("/v1/plugins")).json()["plugins"]
    third = next(plugin for plugin in listed if plugin["name"] == "gatherer")
    assert third["health_status"] == "unhealthy"
    assert _time(third["health_changed_at"]) > _time(second["health_changed_at"])


async def test_a_look_by_a_machine_with_another_clock(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database's clock says when it was: others go on looking, though that machine is a year ahead."""
    gatherer, clock = Gatherer(), OwnClock(monkeypatch)
    env = {"DATABASE_URL": postgres_url, "PLATFORM_REGISTRY_HEALTH_INTERVAL": "1"}
    async with platforms(tmp_path) as start:
        running = await start("plugin_registry", gatherer, env=env)
        clock.by(365 * 24 * 3600.0)
        await running.platform.resource(HEALTH_WATCH).look()
        clock.by(0)
        gatherer.ill = True
        ann = await running.user()

        async def is_ill() -> bool:
            record = (await ann.get("/v1/plugins/gatherer")).json()
            assert _time(record["last_health_check"]) <= datetime.now(UTC)
            return bool(record["health_status"] == "unhealthy")

        await eventually(is_ill, 20)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
