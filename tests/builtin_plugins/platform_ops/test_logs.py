"""The last log lines of the core services (spec 4.8, wire-facts 9.3)."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from kernel.sdk import PUBLIC as OPEN
from kernel.sdk import Context, Message, Plugin, RouteTable, hookimpl
from kernel.testing import Actor, Running, platforms, somebody

pytestmark = pytest.mark.asyncio(loop_scope="module")
log = logging.getLogger("acme")
talking = RouteTable("Talking", service="model-management")


@talking.post("/models/talk/{word}/aloud", access=OPEN, returns=Message)
async def talk(ctx: Context, word: str) -> Message:
    """Write a line."""
    log.warning("says %s with the password=%s", word, "hunter2-and-more")
    return Message(message="said")


def write_elsewhere(text: str) -> None:
    fields = {"name": "acme", "levelno": logging.WARNING, "levelname": "WARNING", "pathname": "/x.py"}
    log.handle(logging.makeLogRecord({**fields, "msg": text}))


class TalkingPlugin(Plugin):
    """Writes log lines for a core service."""

    name = "talking"
    version = "1.0"
    requires = ("models",)

    @hookimpl
    def register_routes(self) -> list[RouteTable]:
        return [talking]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    async with platforms(tmp_path_factory.mktemp("home")) as start:
        yield await start("platform_ops", "models", TalkingPlugin)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chief(running: Running) -> Actor:
    return await somebody(running, role="admin", platform_admin=True)


async def test_a_line_is_kept_for_its_service_without_its_secrets(running: Running, chief: Actor) -> None:
    """Written while a service was served; `tail` counts from the end; others have it not."""
    for word in ("one", "two", "three"):
        assert (await chief.post(f"/v1/models/talk/{word}/aloud")).status == 200
    found = await chief.get("/v1/containers/model-management/logs?tail=2")
    assert found.status == 200, found.body
    body = found.json()
    assert body["name"] == "model-management"
    assert [line["stream"] for line in body["lines"]] == ["stderr", "stderr"]
    assert "acme says two" in body["lines"][0]["text"]
    assert "acme says three" in body["lines"][1]["text"]
    assert "hunter2" not in str(body)
    others = (await chief.get("/v1/containers/platform-ops/logs?tail=2000")).json()
    assert "says" not in str(others)


async def test_what_no_service_wrote_is_the_gateways(running: Running, chief: Actor) -> None:
    """A line of the platform itself, and only the last 2,000 are kept."""
    for number in range(2100):
        write_elsewhere(f"number {number}")
    lines = (await chief.get("/v1/containers/api-gateway/logs?tail=2000")).json()["lines"]
    assert len(lines) == 2000
    assert "number 2099" in str(lines[-5:])
    assert "number 5 " not in str(lines)


async def test_following_streams_new_lines(running: Running, chief: Actor) -> None:
    write_elsewhere("before")
    url = f"{running.url}/v1/containers/api-gateway/logs?follow=true&tail=1"
    headers = {"Authorization": f"Bearer {chief.token}"}
    async with asyncio.timeout(20), running.session.get(url, headers=headers) as answer:
        assert answer.content_type == "text/event-stream"
        assert await answer.content.readline() == b"event: line\n"
        assert b"before" in await answer.content.readline()
        await answer.content.readline()
        write_elsewhere("after")
        assert await answer.content.readline() == b"event: line\n"
        line = json.loads((await answer.content.readline()).removeprefix(b"data: "))
        assert "after" in line["text"]
