"""Pulls: durable, one at a time, through lost connections, followed and cancelled."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kernel.jobs.attempts import JobRunner
from kernel.jobs.kinds import CANCEL
from kernel.testing import Actor, Reply, Running, Start, platforms, somebody
from kernel.testing.draining import run_job
from tests.fakes.model_server import ModelServer, PullScript, Script, model_server

pytestmark = pytest.mark.asyncio


@asynccontextmanager
async def pulling(
    start: Start, pulls: dict[str, PullScript], **more: str
) -> AsyncIterator[tuple[Running, Actor, ModelServer]]:
    """A platform over a scripted Ollama from which these models can be pulled, and its administrator."""
    async with model_server(Script(models=("there:latest",), pulls=pulls)) as server:
        env = {"OLLAMA_BASE_URL": server.url, "PLATFORM_MODELS_PULL_PAUSE_SECONDS": "0", **more}
        running = await start("models", env=env)
        yield running, await somebody(running, role="admin"), server


async def working(running: Running, waiting: Awaitable[Reply]) -> Reply:
    answer = asyncio.ensure_future(waiting)
    while not answer.done():
        await running.run_jobs()
        await asyncio.sleep(0.02)
    return await answer


async def read_pull(admin: Actor, pull_id: str) -> Any:
    return (await admin.get(f"/v1/models/pulls/{pull_id}")).json()


async def later(admin: Actor, model: str) -> str:
    answer = await admin.post("/v1/models", json={"model_id": model, "wait": False})
    assert (answer.status, answer.json()["status"]) == (202, "pulling"), answer.body
    return str(answer.json()["details"]["pull_id"])


async def test_the_blocking_answer(start_anywhere: Start) -> None:
    """201 at the end, as older clients expect it; 200 for what is there."""
    async with pulling(start_anywhere, {"llama3.2": PullScript()}) as (running, admin, _):
        answer = await working(running, admin.post("/v1/models", json={"model_id": "llama3.2"}))
        assert (answer.status, answer.json()["status"], answer.json()["model"]) == (201, "pulled", "llama3.2")
        assert answer.json()["details"]["size_bytes"] == 5_000
        for name in ("llama3.2", "llama3.2:latest", "there"):
            again = await admin.post("/v1/models", json={"model_id": name})
            assert (again.status, again.json()["status"]) == (200, "already_exists")
        items = (await running.anonymous.get("/v1/models")).json()["items"]
        assert [item["id"] for item in items] == ["there:latest", "llama3.2"]


@pytest.mark.parametrize(
    "model",
    [
        *("evil.example.org/model", "localhost/model", "host:5000/model", "", "a b", "-x", "LOCALHOST/x"),
        "registry/library/model",
    ],
)
async def test_refused_names(start_platform: Start, model: str) -> None:
    """Nobody pulls from a registry of his own choice."""
    running = await start_platform("models")
    refused = await (await somebody(running, role="admin")).post("/v1/models", json={"model_id": model})
    assert refused.status == 422


async def test_lost_connections(start_anywhere: Start) -> None:
    """Three connections are lost; each new one continues where the last one ended."""
    script = PullScript(lost_at=[1_000, 2_000, 4_000])
    async with pulling(start_anywhere, {"big": script}) as (running, admin, _):
        answer = await working(running, admin.post("/v1/models", json={"model_id": "big"}))
        assert (answer.status, script.attempts) == (201, 4)


async def test_no_progress_is_given_up(start_anywhere: Start) -> None:
    """Connections that bring nothing end the pull, with plain words and none of the runtime's."""
    script = PullScript(lost_at=[0] * 50)
    more = {"PLATFORM_MODELS_PULL_ATTEMPTS": "3"}
    async with pulling(start_anywhere, {"big": script}, **more) as (running, admin, _):
        answer = await working(running, admin.post("/v1/models", json={"model_id": "big"}))
        assert (answer.status, answer.json()["code"]) == (503, "pull_failed")
        assert "after 3 attempts" in answer.detail
        assert script.attempts == 3


async def test_an_unknown_model(start_platform: Start) -> None:
    """The registry's refusal is not taken for a lost connection: it is reported at once."""
    async with pulling(start_platform, {}) as (running, admin, server):
        answer = await working(running, admin.post("/v1/models", json={"model_id": "nothing"}))
        assert answer.status == 503
        assert "'nothing'" in answer.detail
        assert sum(request.path == "/api/pull" for request in server.requests) == 1


async def test_one_at_a_time(start_anywhere: Start) -> None:
    """The second waits, the same one twice is one, and each starts the next."""
    gate = asyncio.Event()
    pulls = {"a": PullScript(gate=gate), "b": PullScript()}
    async with pulling(start_anywhere, pulls) as (running, admin, server):
        first, second = await later(admin, "a"), await later(admin, "b")
        assert await later(admin, "a") == first
        worker = asyncio.create_task(running.run_jobs())
        await server.streaming.wait()
        assert ((await read_pull(admin, first))["status"], (await read_pull(admin, second))["status"]) == (
            *("running",),
            "queued",
        )
        assert pulls["b"].attempts == 0
        gate.set()
        await worker
        await running.run_jobs()
        page = (await admin.get("/v1/models/pulls")).json()
        assert [(item["model"], item["status"]) for item in page["items"]] == [("b", "done"), ("a", "done")]
        assert page["total"] == 2


async def test_progress_as_events(start_platform: Start) -> None:
    """`Accept: text/event-stream` shows the bytes as they come, up to the end."""
    async with pulling(start_platform, {"big": PullScript(files=(10_000, 40_000))}) as (running, admin, _):
        headers = {"Accept": "text/event-stream"}
        answer = await working(running, admin.post("/v1/models", json={"model_id": "big"}, headers=headers))
        lines = answer.body.decode().splitlines()
        events = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
        assert events[-1]["status"] == "done"
        assert (events[-1]["completed_bytes"], events[-1]["total_bytes"]) == (50_000, 50_000)
        assert {line for line in lines if line.startswith("event: ")} == {"event: pull"}


async def test_cancelling(start_anywhere: Start) -> None:
    """One that waits ends at once; one that runs ends a moment later, and the runtime hears of it."""
    gate = asyncio.Event()
    async with pulling(start_anywhere, {"a": PullScript(gate=gate), "b": PullScript()}) as (
        running,
        admin,
        server,
    ):
        first, second = await later(admin, "a"), await later(admin, "b")
        assert (await admin.delete(f"/v1/models/pulls/{second}")).json()["status"] == "cancelled"
        runner = JobRunner(running.platform)
        running.platform.notices.listen(CANCEL, runner.cancel)
        worker = asyncio.create_task(run_job(runner, first))
        await server.streaming.wait()
        assert (await admin.delete(f"/v1/models/pulls/{first}")).status == 202
        await worker
        await asyncio.wait_for(server.disconnected.wait(), 10)
        await running.run_jobs()
        assert (await read_pull(admin, first))["status"] == "cancelled"
        again = await admin.delete(f"/v1/models/pulls/{second}")
        assert (again.status, again.json()["code"]) == (409, "pull_ended")
        unknown = await admin.delete("/v1/models/pulls/00000000-0000-4000-8000-000000000000")
        assert unknown.status == 404


async def test_a_restart_goes_on(tmp_path: Path) -> None:
    """What was asked for before a crash is pulled by the worker that comes after it."""
    script = PullScript(lost_at=[3_000])
    async with model_server(Script(models=(), pulls={"big": script})) as server:
        env = {"OLLAMA_BASE_URL": server.url, "PLATFORM_MODELS_PULL_PAUSE_SECONDS": "0"}
        async with platforms(tmp_path) as start:
            running = await start("models", env=env)
            pull_id = await later(await somebody(running, role="admin"), "big")
        async with platforms(tmp_path) as start:
            running = await start("models", env=env)
            await running.run_jobs()
            assert (await read_pull(await somebody(running, role="admin"), pull_id))["status"] == "done"
    assert script.completed == 5_000


async def test_room_is_checked_first(start_platform: Start, tmp_path: Path) -> None:
    """A model that does not fit is refused: before it begins, or once its size is known."""
    folder = tmp_path / "store"
    folder.mkdir()
    more = {"PLATFORM_MODELS_STORE_FOLDER": str(folder)}
    script = PullScript(files=(10**15, 10**15))
    async with pulling(start_platform, {"huge": script}, **more) as (running, admin, _):
        answer = await working(running, admin.post("/v1/models", json={"model_id": "huge"}))
        assert (answer.status, "disk space" in answer.detail) == (503, True)
    more["PLATFORM_MODELS_SPARE_DISK_GB"] = "1000000000"
    async with pulling(start_platform, {"small": PullScript()}, **more) as (running, admin, server):
        answer = await admin.post("/v1/models", json={"model_id": "small"})
        assert (answer.status, answer.json()["code"]) == (507, "model_storage_full")
        assert not any(request.path == "/api/pull" for request in server.requests)
