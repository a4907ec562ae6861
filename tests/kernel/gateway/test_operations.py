"""`/health`, `/v1/status`, `/livez`, `/v1/permissions`: what operators and probes read."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from cli.machine_checks import check_confinement
from kernel.libs.children.confinement import missing_confinement
from kernel.plugins.states import PLUGIN_STATES
from kernel.sdk import HealthCheck, Platform, Plugin, Unhealthy, hookimpl
from kernel.stores.disk import DiskSpace
from kernel.testing import Start, platforms
from tests.fakes.echo import EchoPlugin
from tests.fakes.network import wire_to
from tests.fakes.shelf_stores.cache import ShelfCache
from tests.fakes.shelf_stores.plugin import ShelfPlugin
from tests.fakes.speech import SpeechPlugin
from tests.fakes.without_landlock import run_without_landlock

NAMES = [
    "api-gateway",
    "plugin-registry",
    "marketplace",
    "orchestrator",
    "rag-pipeline",
    "model-management",
    "tts-stt",
    "graph-rag",
    "platform-ops",
]


SECRET = {"JWT_SECRET": "a secret of at least thirty-two bytes, for tests"}


class HangingDisk:
    """A disk with this folder, where writing takes until it is `well`; `asked` counts the writes."""

    def __init__(self, folder: Path) -> None:
        self.asked, self.well = threading.Semaphore(0), threading.Event()
        self.given_up = False
        self._folder, self._real = folder, os.utime

    def utime(self, path: Any, *arguments: Any, **options: Any) -> None:
        """`os.utime`; gives up after a while, as who waits in the event loop is never told."""
        if path == self._folder:
            self.asked.release()
            self.given_up |= not self.well.wait(5)
        self._real(path, *arguments, **options)


class CountingPlugin(Plugin):
    """Counts how often its health is examined."""

    name = "counting"
    version = "1"

    def __init__(self) -> None:
        self.examined, self.well = 0, True

    @hookimpl
    def register_health_checks(self) -> list[HealthCheck]:
        return [HealthCheck("counted", self._examine)]

    async def _examine(self, _platform: Platform) -> None:
        self.examined += 1
        if not self.well:
            raise Unhealthy("worn out")


class TestHealth:
    async def test_shape(self, start_platform: Start) -> None:
        running = await start_platform(EchoPlugin)
        answer = await running.anonymous.get("/health")
        body = answer.json()
        assert (answer.status, body["status"], body["service"]) == (200, "healthy", "api-gateway")
        assert datetime.fromisoformat(body["timestamp"]).tzinfo is not None
        assert (body["environment"], bool(body["version"])) == ("test", True)
        services = [name.replace("-", "_") for name in NAMES[1:]]
        assert body["checks"] == {
            **dict.fromkeys(("database", "disk", "cache", "plugins"), "healthy"),
            "child_processes": body["checks"]["child_processes"],
            **dict.fromkeys(services, "not installed"),
        }
        assert (body["phase"], "message" in body) == (1, False)
        loaded = {"status": "loaded", "reason": None}
        assert body["plugins"] == dict.fromkeys(("accounts", "echo", "long_jobs", "shared_counters"), loaded)

    @pytest.mark.skipif(bool(missing_confinement()), reason="this kernel can't confine processes")
    async def test_a_kernel_that_cannot_confine(self, start_platform: Start, platform_home: Path) -> None:
        """Health and doctor say that children are only limited; the platform is healthy nevertheless."""
        running = await start_platform(EchoPlugin)
        assert (await running.anonymous.get("/health")).json()["checks"]["child_processes"] == "healthy"
        assert check_confinement().status == "ok"

        async def look() -> None:
            async with platforms(platform_home.with_name("other")) as start:
                body = (await (await start(EchoPlugin)).anonymous.get("/health")).json()
            assert body["status"] == "healthy" and "Landlock" in body["checks"]["child_processes"]
            assert "seccomp" not in body["checks"]["child_processes"]
            found = check_confinement()
            assert found.status == "warning" and "Landlock" in found.text and found.remedy

        await asyncio.to_thread(run_without_landlock, look)

    async def test_a_disk_that_hangs(self, start_platform: Start, monkeypatch: pytest.MonkeyPatch) -> None:
        """It holds up its own check alone, which is looked into once: other requests are answered."""
        running = await start_platform(EchoPlugin)
        disk = HangingDisk(running.platform.settings.home)
        monkeypatch.setattr(os, "utime", disk.utime)
        looks = [asyncio.create_task(running.platform.disk.check()) for _ in range(2)]
        await asyncio.to_thread(disk.asked.acquire)
        assert (await running.anonymous.get("/livez")).status == 200
        assert not disk.given_up
        disk.well.set()
        await asyncio.gather(*looks)
        assert not disk.asked.acquire(blocking=False)

    async def test_a_stop_while_a_disk_hangs(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The event loop ends although a check of the disk hangs."""
        disk = HangingDisk(tmp_path)
        monkeypatch.setattr(os, "utime", disk.utime)

        async def look() -> None:
            looking = asyncio.create_task(DiskSpace([tmp_path], 0).check())
            await asyncio.to_thread(disk.asked.acquire)
            looking.cancel()

        await asyncio.to_thread(asyncio.run, look())
        assert not disk.given_up
        disk.well.set()

    async def test_database_away(self, start_platform: Start, postgres_url: str) -> None:
        """Without its database the platform is unhealthy (503) but answers, and recovers by itself."""
        parts = urlsplit(postgres_url)
        async with wire_to(parts.hostname or "", parts.port or 5432) as wire:
            url = postgres_url.replace(f"{parts.hostname}:{parts.port}", f"127.0.0.1:{wire.port}")
            running = await start_platform(EchoPlugin, env={"DATABASE_URL": url})
            ana = await running.user("ana")
            assert (await running.anonymous.get("/health")).status == 200
            await wire.cut()
            answer = await running.anonymous.get("/health")
            assert (answer.status, answer.json()["status"]) == (503, "unhealthy")
            assert answer.json()["checks"]["database"].startswith("unhealthy: ")
            login = {"username": "ana", "password": ana.password}
            refused = await running.anonymous.post("/v1/auth/login", json=login)
            assert (refused.status, refused.json()["code"]) == (503, "unavailable")
            assert (await running.anonymous.get("/v1/auth/capabilities")).status == 200
            assert (await running.anonymous.get("/livez")).status == 200
            await wire.start()
            assert (await running.anonymous.post("/v1/auth/login", json=login)).status == 200
            assert (await running.anonymous.get("/health")).status == 200

    async def test_services(self, start_platform: Start) -> None:
        """Each core service by its name: here, on another machine, unreachable, or not installed."""
        speech = SpeechPlugin()
        there = await start_platform(speech, only="tts-stt", env=SECRET)
        here = await start_platform(speech, env=SECRET)
        urls = f"tts-stt={there.url},graph-rag=http://127.0.0.1:9"
        gateway = await start_platform("remote_services", env={**SECRET, "PLATFORM_SERVICE_URLS": urls})
        assert (await here.anonymous.get("/health")).json()["checks"]["tts_stt"] == "healthy"
        answer = await gateway.anonymous.get("/health")
        body = answer.json()
        assert (answer.status, body["status"]) == (200, "degraded")
        assert body["checks"]["tts_stt"] == "healthy"
        assert body["checks"]["graph_rag"].startswith("unhealthy: ")
        assert body["checks"]["rag_pipeline"] == "not installed"
        assert "graph_rag" in body["message"] and "tts_stt" not in body["message"]

    async def test_a_service_that_is_unhealthy(self, start_platform: Start) -> None:
        """A critical check of a service shows under the service's name, in process as elsewhere."""
        speech = SpeechPlugin()
        there = await start_platform(speech, only="tts-stt", env=SECRET)
        here = await start_platform(speech, env=SECRET)
        gateway = await start_platform(
            "remote_services", env={**SECRET, "PLATFORM_SERVICE_URLS": f"tts-stt={there.url}"}
        )
        speech.healthy = False
        for running in (here, gateway):
            checks = (await running.anonymous.get("/health")).json()["checks"]
            assert checks["tts_stt"] == "unhealthy: tts_engine: the engine is missing"

    async def test_a_service_without_its_programs(self, start_platform: Start) -> None:
        """What is not installed takes down its own service, and degrades nothing else."""
        speech = SpeechPlugin()
        there = await start_platform(speech, only="tts-stt", env=SECRET)
        here = await start_platform(speech, env=SECRET)
        speech.installed = False
        alone, platform = [await running.anonymous.get("/health") for running in (there, here)]
        assert (alone.status, alone.json()["status"]) == (503, "unhealthy")
        assert (platform.status, platform.json()["status"]) == (200, "healthy")
        assert platform.json()["checks"]["tts_engine"] == "not installed: install an engine"

    async def test_critical_services(self, start_platform: Start) -> None:
        """The registry is critical; from phase 2 on RAG and models are."""
        urls = "rag-pipeline=http://127.0.0.1:9"
        for phase, status in ((1, 200), (2, 503)):
            env = {"PLATFORM_SERVICE_URLS": urls, "PLATFORM_PHASE": str(phase)}
            assert (
                await (await start_platform("remote_services", env=env)).anonymous.get("/health")
            ).status == status
        lost = await start_platform(
            "remote_services", env={"PLATFORM_SERVICE_URLS": "plugin-registry=http://127.0.0.1:9"}
        )
        assert (await lost.anonymous.get("/health")).status == 503

    async def test_redis(self, start_platform: Start, redis_url: str) -> None:
        """Where Redis is the cache store, it is named as well."""
        running = await start_platform(env={"REDIS_URL": redis_url})
        checks = (await running.anonymous.get("/health")).json()["checks"]
        assert (checks["cache"], checks["redis"]) == ("healthy", "healthy")

    async def test_a_cache_store_that_is_away(self, start_platform: Start) -> None:
        """Only platform-ops is unhealthy (spec 4.8); the whole platform keeps serving and names the check."""
        for only, status in (("platform-ops", 503), (None, 200)):
            env = {**SECRET, "PLATFORM_CACHE_STORE": "shelf"}
            running = await start_platform("platform_ops", ShelfPlugin, env=env, only=only)
            cache = running.platform.cache
            assert isinstance(cache, ShelfCache)
            assert (await running.anonymous.get("/health")).status == 200
            cache.away = True
            answer = await running.anonymous.get("/health")
            state = answer.json()["checks"]["cache_store"].partition(":")[0]
            assert (answer.status, state) == (status, "unhealthy")

    async def test_livez_and_readyz(self, start_platform: Start) -> None:
        running = await start_platform()
        assert (await running.anonymous.get("/livez")).json() == {"status": "alive"}
        assert (await running.anonymous.get("/readyz")).json()["status"] == "healthy"


class TestSharedReports:
    async def test_many_who_ask(self, start_platform: Start) -> None:
        """All who ask within a moment share one examination, in whichever route; each route has its own."""
        plugin = CountingPlugin()
        running = await start_platform(plugin, env={"PLATFORM_HEALTH_CACHE_SECONDS": "1"})
        paths = ["/health", "/readyz"] * 20
        answers = await asyncio.gather(*(running.anonymous.get(path) for path in paths))
        assert {answer.json()["checks"]["counted"] for answer in answers} == {"healthy"}
        assert plugin.examined == 1
        assert len({answer.json()["timestamp"] for answer in answers}) == 1

    async def test_a_fault(self, start_platform: Start) -> None:
        """It is reported as soon as the last report is too old, and so is its end."""
        plugin = CountingPlugin()
        running = await start_platform(plugin, env={"PLATFORM_HEALTH_CACHE_SECONDS": "0.1"})
        for well in (True, False, True):
            plugin.well = well
            until = time.monotonic() + 0.1
            while time.monotonic() <= until:
                await running.anonymous.get("/health")
            checks = (await running.anonymous.get("/health")).json()["checks"]
            assert (checks["counted"] == "healthy") is well

    async def test_a_plugin_switched_off(self, start_platform: Start) -> None:
        """It is out of the report at once, however young the last one is."""
        running = await start_platform(CountingPlugin(), env={"PLATFORM_HEALTH_CACHE_SECONDS": "1"})
        assert "counted" in (await running.anonymous.get("/health")).json()["checks"]
        running.platform.resource(PLUGIN_STATES).fail("counting", "it broke")
        assert "counted" not in (await running.anonymous.get("/health")).json()["checks"]


class TestStatus:
    async def test_nine_names(self, start_platform: Start) -> None:
        """All nine services are listed, and those that nobody offers say so."""
        running = await start_platform(SpeechPlugin())
        answer = await running.anonymous.get("/v1/status")
        entries = {entry["name"]: entry for entry in answer.json()["services"]}
        assert (answer.status, list(entries)) == (200, NAMES)
        assert entries["api-gateway"]["reachable"] and entries["tts-stt"]["reachable"]
        absent = entries["marketplace"]
        assert (absent["reachable"], absent["status"]) == (False, "unreachable")
        assert absent["error"]

    async def test_one_that_is_away(self, start_platform: Start) -> None:
        running = await start_platform(
            "remote_services", env={"PLATFORM_SERVICE_URLS": "tts-stt=http://127.0.0.1:9"}
        )
        answer = await running.anonymous.get("/v1/status")
        entry = next(item for item in answer.json()["services"] if item["name"] == "tts-stt")
        assert (answer.status, entry["reachable"], entry["status"]) == (200, False, "unreachable")
        assert len(entry["error"]) <= 200


async def test_permissions(start_platform: Start) -> None:
    """Every declared permission with its sentence, for who signed in."""
    running = await start_platform(EchoPlugin)
    assert (await running.anonymous.get("/v1/permissions")).status == 401
    ana = await running.user()
    listed = (await ana.get("/v1/permissions")).json()["permissions"]
    assert [item["key"] for item in listed] == ["echo.use", "echo.withheld"]
    assert all(item["description"].endswith(".") for item in listed)
