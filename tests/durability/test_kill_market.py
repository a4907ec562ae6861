"""The marketplace's server is killed in the middle of installs, reviews and synchronizations.

What was acknowledged is there afterwards, each thing once, and what belongs together agrees.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from kernel.testing import environment
from tests.durability.test_kills import Server
from tests.fakes.command_line import run_command
from tests.fakes.processes import without_plugins

pytestmark = pytest.mark.durability

PLUGINS = ("tenancy", "access_tokens", "marketplace", "plugin_registry")
CAP = 6
LISTINGS = 12
MOVES = {"draft": "submit", "submitted": "claim", "in_review": "approve", "approved": "archive"}
_LOST = (aiohttp.ClientError, TimeoutError, ConnectionError)


@dataclass
class Shopper:
    """Installs, reviews and synchronizes as fast as it can, and remembers what was acknowledged."""

    server: Server
    session: aiohttp.ClientSession
    headers: Mapping[str, str]
    installed: set[str] = field(default_factory=set)
    moved: dict[str, list[str]] = field(default_factory=dict)
    tools: int = 0

    async def call(self, method: str, path: str, **options: Any) -> tuple[int, Any]:
        timeout = aiohttp.ClientTimeout(total=30)
        url = f"{self.server.url}/v1/marketplace/{path}"
        request = self.session.request(method, url, headers=self.headers, timeout=timeout, **options)
        async with request as answer:
            return answer.status, await answer.json()

    async def create(self, name: str) -> str:
        fields = {"name": name, "display_name": name, "author": "Ann"}
        status, body = await self.call("POST", "plugins", json=fields)
        assert status == 201, body
        return str(body["id"])

    async def install_all(self, ids: list[str]) -> None:
        """Until the server is gone; the cap leaves some out."""
        with suppress(*_LOST):
            for plugin in ids:
                status, _ = await self.call("POST", f"plugins/{plugin}/install")
                if status == 200:
                    self.installed.add(plugin)

    async def review_all(self, ids: list[str]) -> None:
        """Each listing one move further; a move that was made before the kill, but not answered, is 409."""
        with suppress(*_LOST):
            for plugin in ids:
                _, found = await self.call("GET", f"plugins/{plugin}")
                trigger = MOVES.get(found["status"])
                if trigger is not None:
                    status, _ = await self.call("POST", f"submissions/{plugin}/{trigger}")
                    if status == 200:
                        self.moved.setdefault(plugin, []).append(trigger)

    async def synchronize(self, plugin: str) -> None:
        """Tools of one release after another; all of a release change together."""
        with suppress(*_LOST):
            while True:
                number = self.tools + 1
                names = [{"name": f"tool_{at}", "description": f"release {number}"} for at in range(8)]
                body = {"plugin_name": "x", "plugin_id": plugin, "manifest": {"ai_tools": names}}
                status, _ = await self.call("POST", "ai/sync", json=body)
                assert status == 200
                self.tools = number


async def _made_ready(server: Server, shopper: Shopper) -> tuple[list[str], list[str]]:
    shop = [await shopper.create(f"shop {number}") for number in range(LISTINGS)]
    for _ in range(3):
        await shopper.review_all(shop)
    shopper.moved.clear()
    return shop, [await shopper.create(f"draft {number}") for number in range(LISTINGS)]


def _admin_token(home: Path, database_url: str | None) -> str:
    values = environment(home, {"DATABASE_URL": database_url, **without_plugins(*PLUGINS)})

    def run(*arguments: str) -> str:
        result = run_command(*arguments, env=values)
        assert result.exit_code == 0, result.output
        return result.stdout.strip()

    run("users", "create", "ann", "--admin", "--generate")
    return run("token", "create", "ann", "--name", "shopping")


@pytest.mark.long
@pytest.mark.either_database
async def test_kills_leave_the_marketplace_consistent(
    platform_home: Path, database_url: str | None, request: pytest.FixtureRequest
) -> None:
    """Acknowledged installs, moves and tools are there, once, and agree with what follows from them."""
    chance = random.Random(11)
    server = Server(platform_home, database_url, plugins=PLUGINS, MAX_PLUGINS_PER_USER=str(CAP))
    await server.start()
    try:
        token = await asyncio.to_thread(_admin_token, platform_home, database_url)
        async with aiohttp.ClientSession() as session:
            shopper = Shopper(server, session, {"Authorization": f"Bearer {token}"})
            shop, drafts = await _made_ready(server, shopper)
            for _ in range(request.config.getoption("--market-kills")):
                work = asyncio.gather(
                    shopper.install_all(chance.sample(shop, len(shop))),
                    shopper.review_all(drafts),
                    shopper.synchronize(shop[0]),
                )
                await asyncio.sleep(chance.uniform(0.02, 0.4))  # the random moment itself
                await server.kill_api()
                await work
                await server.start()
                await _check(shopper, shop, drafts)
    finally:
        await server.stop()


async def _check(shopper: Shopper, shop: list[str], drafts: list[str]) -> None:
    _, mine = await shopper.call("GET", "installations/me")
    found = [one["plugin_id"] for one in mine["installations"]]
    assert len(found) == len(set(found)) <= CAP
    assert shopper.installed <= set(found)
    for plugin in shop:
        _, record = await shopper.call("GET", f"plugins/{plugin}")
        assert record["download_count"] == found.count(plugin)
    for plugin in drafts:
        await _check_history(shopper, plugin)
    _, tools = await shopper.call("GET", f"ai/plugins/{shop[0]}/tools")
    releases = {int(tool["description"].split()[1]) for tool in tools["tools"]}
    if shopper.tools:
        assert (len(releases), tools["count"]) == (1, 8)
        assert releases.pop() in (shopper.tools, shopper.tools + 1)


async def _check_history(shopper: Shopper, plugin: str) -> None:
    """The moves follow from each other to the state of the record, and the search knows what is approved."""
    _, record = await shopper.call("GET", f"plugins/{plugin}")
    _, history = await shopper.call("GET", f"submissions/{plugin}/history")
    states = ["draft"]
    for made in history["transitions"]:
        assert made["from_status"] == states[-1]
        states.append(made["to_status"])
    assert states[-1] == record["status"]
    assert len(states) - 1 >= len(shopper.moved.get(plugin, []))
    _, page = await shopper.call("GET", "plugins/search", params={"q": record["name"]})
    is_found = plugin in [one["id"] for one in page["plugins"]]
    assert is_found == (record["status"] == "approved")
