"""Bundles and logs of containers, by an engine at `DOCKER_HOST` (spec 4.8, wire-facts 9.2, 9.3)."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from builtin_plugins.platform_ops.containers.engine import Engine, EngineUnusable, opened
from builtin_plugins.platform_ops.containers.frames import LONGEST_LINE
from kernel.testing import Actor, Running, platforms, somebody
from tests.fakes.container_engine import STDERR, STDOUT, FakeContainer, FakeEngine, listening

pytestmark = pytest.mark.asyncio(loop_scope="module")
_IMAGE = "registry.example/models:1.4@sha256:ab"


@dataclass
class Yard:
    """A platform beside an engine, and a Platform Admin."""

    running: Running
    engine: FakeEngine
    chief: Actor
    address: str

    def container(self, service: str) -> FakeContainer:
        return next(one for one in self.engine.containers.values() if one.service == service)

    async def done(self, path: str) -> dict[str, Any]:
        reply = await self.chief.post(f"/v1/bundles/{path}")
        assert reply.status == 200, reply.body
        return dict(reply.json())

    async def bundle_record(self, name: str) -> dict[str, Any]:
        bundles = (await self.running.anonymous.get("/v1/bundles")).json()["bundles"]
        return next(dict(bundle) for bundle in bundles if bundle["name"] == name)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["unix", "tcp"])
async def yard(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Yard]:
    """Containers of services, of something else, and one that does not start."""
    parts = [(STDOUT, b"one\ntw"), (STDERR, b"oops\n"), (STDOUT, b"o\n")]
    engine = FakeEngine(
        FakeContainer("rag-pipeline", "rag", written=parts),
        FakeContainer("model-management", "rag, inference,chat", image=_IMAGE),
        FakeContainer("grafana", "monitoring", image="grafana/grafana:11.2", state="exited"),
        FakeContainer("broken", "monitoring", image="refuses", state="exited"),
        FakeContainer("orchestrator", "chat", tty=True, written=[(STDOUT, b"on a terminal\r\nand more")]),
        FakeContainer("elsewhere", None),
    )
    home = tmp_path_factory.mktemp("home")
    async with AsyncExitStack() as stack:
        socket = home / "docker.sock" if request.param == "unix" else None
        address = await stack.enter_async_context(listening(engine, socket))
        start = await stack.enter_async_context(platforms(home / "platform"))
        running = await start("platform_ops", "plugin_registry", "speech", env={"DOCKER_HOST": address})
        chief = await somebody(running, role="admin", platform_admin=True)
        yield Yard(running, engine, chief, address)


async def test_labels_name_what_bundles_claim(yard: Yard) -> None:
    """Services, images that name a version, bundles of containers beside the platform's own."""
    rag = await yard.bundle_record("rag")
    assert rag["claims"] == ["rag-pipeline", "model-management"]
    images = {one["name"]: one["image"] for one in rag["services"]}
    assert images == {
        "rag-pipeline": None,
        "model-management": _IMAGE,
    }
    assert (await yard.bundle_record("monitoring"))["claims"] == ["broken", "grafana"]
    assert "elsewhere" not in (await yard.running.anonymous.get("/v1/bundles")).body.decode()


async def test_a_bundle_starts_and_stops_containers(yard: Yard) -> None:
    """What another bundle claims goes on; what fails stops no other; reconcile does the rest."""
    off = await yard.done("rag/disable")
    assert (off["stopped"], off["orphaned"]) == (["rag-pipeline"], ["rag-pipeline"])
    assert yard.container("rag-pipeline").state == "exited"
    assert yard.container("model-management").state == "running"
    assert (await yard.done("rag/disable"))["already_stopped"] == ["rag-pipeline"]
    on = await yard.done("monitoring/enable")
    assert on["started"] == ["grafana"]
    [error] = on["errors"]
    assert error.startswith("broken: ") and " 500: driver failed" in error
    yard.container("rag-pipeline").state = "running"
    again = await yard.done("reconcile")
    assert again["stopped"] == ["rag-pipeline"]
    assert "grafana" in again["already_running"]
    assert (await yard.done("rag/enable"))["started"] == ["rag-pipeline"]


async def test_without_a_container_the_plugin_is_switched(yard: Yard) -> None:
    """Speech runs in this process; the graph neither here nor in a container."""
    assert (await yard.done("voice/disable"))["stopped"] == ["tts-stt"]
    assert not yard.running.platform.is_on("speech")
    assert (await yard.done("voice/enable"))["started"] == ["tts-stt"]
    assert (await yard.done("graph-rag/enable"))["pending_create"] == ["graph-rag"]


async def test_readiness_is_that_of_the_containers(yard: Yard) -> None:
    async def ready() -> bool:
        found = (await yard.running.anonymous.get("/v1/bundles/ready")).json()["bundles"]
        return next(bool(bundle["ready"]) for bundle in found if bundle["name"] == "inference")

    await yard.done("reconcile")
    assert await ready()
    yard.container("model-management").health = "unhealthy"
    await yard.done("reconcile")
    assert not await ready()
    yard.container("model-management").health = "healthy"
    await yard.done("reconcile")
    assert await ready()


async def test_logs_are_the_containers(yard: Yard) -> None:
    """Frames of two streams, cut anywhere, become lines; a terminal has one stream; tail is passed on."""
    found = (await yard.chief.get("/v1/containers/rag-pipeline/logs?tail=50")).json()
    assert found["lines"] == [
        {"stream": "stdout", "text": "one"},
        {"stream": "stderr", "text": "oops"},
        {"stream": "stdout", "text": "two"},
    ]
    found = (await yard.chief.get("/v1/containers/orchestrator/logs")).json()
    assert [line["text"] for line in found["lines"]] == ["on a terminal", "and more"]
    yard.container("model-management").written = [
        (STDOUT, b"x" * 5000 + b"\n"),
        (STDERR, b"password=hunter22 \xff\n"),
    ]
    found = (await yard.chief.get("/v1/containers/model-management/logs?tail=2")).json()
    assert len(found["lines"][0]["text"]) == LONGEST_LINE
    assert found["lines"][1]["text"] == "password=*** \ufffd"


async def test_only_core_services_have_logs(yard: Yard) -> None:
    """Not the containers of others, though the engine has them; one that runs here shows its own lines."""
    for name in ("grafana", "elsewhere", "graph-rag"):
        assert (await yard.chief.get(f"/v1/containers/{name}/logs")).status == 404
    assert (await yard.chief.get("/v1/containers/tts-stt/logs")).status == 200


async def test_logs_are_followed_until_the_reader_leaves(yard: Yard) -> None:
    """New lines arrive at once; the engine's stream is closed when nobody reads any more."""
    one = yard.container("rag-pipeline")
    url = f"{yard.running.url}/v1/containers/rag-pipeline/logs?follow=true&tail=1"
    headers = {"Authorization": f"Bearer {yard.chief.token}"}
    async with asyncio.timeout(20):
        async with yard.running.session.get(url, headers=headers) as answer:
            assert answer.content_type == "text/event-stream"
            await answer.content.readuntil(b"\n\n")
            await one.more.put((STDERR, b"now\n"))
            event = await answer.content.readuntil(b"\n\n")
            assert json.loads(event.split(b"data: ")[1]) == {"stream": "stderr", "text": "now"}
        while yard.engine.followers:
            await one.more.put((STDOUT, b"anybody there?\n"))
            await asyncio.sleep(0.01)


async def test_an_engine_that_fails_is_said_to(yard: Yard) -> None:
    """502 with the engine's text, without secrets; the wanted state is not stored."""
    yard.engine.broken = 500
    try:
        refused = await yard.chief.get("/v1/containers/rag-pipeline/logs")
        assert refused.status == 502
        assert refused.detail.endswith(" 500: the engine is out of order, password=***")
        assert (await yard.chief.post("/v1/bundles/chat/disable")).status == 502
    finally:
        yard.engine.broken = None
    assert (await yard.bundle_record("chat"))["enabled"] is True


async def test_dockers_own_client_reads_the_same(yard: Yard) -> None:
    """What stands in for an engine here speaks as one does: Docker's client lists and reads from it."""
    docker = shutil.which("docker")
    if docker is None:
        pytest.skip("Docker's client is not installed")
    texts = []
    for command in (("ps", "--all", "--format", "{{.Names}}"), ("logs", "demo-rag-pipeline-1")):
        process = await asyncio.create_subprocess_exec(
            docker,
            "--host",
            yard.address,
            *command,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(process.communicate(), 20)
        texts.append((out.decode(), err.decode()))
    assert "demo-rag-pipeline-1" in texts[0][0].split()
    assert texts[1] == ("one\ntwo\n", "oops\n")


async def test_an_engine_that_is_away_is_unavailable(tmp_path: Path) -> None:
    async with platforms(tmp_path) as start:
        env = {"DOCKER_HOST": f"unix://{tmp_path}/nobody.sock"}
        running = await start("platform_ops", env=env)
        chief = await somebody(running, role="admin", platform_admin=True)
        for path in ("/v1/bundles", "/v1/bundles/ready", "/v1/containers/api-gateway/logs"):
            refused = await chief.get(path)
            assert refused.status == 503
            assert refused.json()["code"] == "container_engine_unreachable"
        assert (await chief.post("/v1/bundles/voice/disable")).status == 503
        assert (await chief.get("/v1/backups")).status == 200


_UNUSABLE = (
    *("ssh://me:hunter22@host", "localhost:2375", "unix://", "unix:///", "unix://relative.sock", "tcp://"),
    *("tcp://host:port", "tcp://[::1", "npipe:////./pipe/docker", "fd://", " ", "unix:///" + "x" * 120),
    "tcp://xn--a.example:2375",
)


async def test_an_address_that_cannot_work_stops_only_what_needs_it(tmp_path: Path) -> None:
    """The variable is often there for Docker's own client: bundles say what is wrong, backups go on."""
    async with platforms(tmp_path) as start:
        running = await start("platform_ops", env={"DOCKER_HOST": _UNUSABLE[0]})
        chief = await somebody(running, role="admin", platform_admin=True)
        for path in ("/v1/bundles", "/v1/bundles/ready", "/v1/containers/api-gateway/logs"):
            refused = await chief.get(path)
            assert (refused.status, refused.json()["code"]) == (503, "container_engine_unusable")
            assert "DOCKER_HOST" in refused.detail
        assert b"hunter22" not in refused.body
        started = await chief.post("/v1/backups")
        assert started.status == 202
        await running.run_jobs()
        done = (await chief.get(f"/v1/backups/jobs/{started.json()['id']}")).json()
        assert done["status"] == "done", done


async def test_unusable_addresses_are_told_from_engines_that_are_away() -> None:
    for address in _UNUSABLE:
        async with opened(address) as engine:
            assert isinstance(engine, EngineUnusable), address
    for address in ("unix:///var/run/docker.sock", "tcp://127.0.0.1:2375/", "https://[::1]:2376"):
        async with opened(address) as engine:
            assert isinstance(engine, Engine), address
