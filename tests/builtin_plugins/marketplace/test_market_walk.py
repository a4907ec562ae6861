"""A random walk over the marketplace: every answer is that of a plain model of it.

`pytest tests/builtin_plugins/marketplace/test_market_walk.py --market-steps 5000` is the long run.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from kernel.testing import Actor
from tests.builtin_plugins.marketplace.conftest import Market
from tests.builtin_plugins.marketplace.marketplace_support import PLUGINS, SUBMISSIONS, move
from tests.builtin_plugins.tenancy.tenancy_support import fresh

pytestmark = pytest.mark.asyncio(loop_scope="session")

CAP = 5  # MAX_PLUGINS_PER_USER of the fixture
MOST_LISTINGS = 30
MOVES = {
    "submit": {"draft": "submitted", "rejected": "submitted"},
    "claim": {"submitted": "in_review"},
    "approve": {"in_review": "approved"},
    "reject": {"submitted": "rejected", "in_review": "rejected"},
    "archive": {"approved": "archived"},
}


@dataclass
class Plugin:
    """A listing as the model has it. `installs` are accounts with (installed, enabled)."""

    id: str
    name: str
    owner: str
    status: str = "draft"
    featured: bool = False
    moves: int = 0
    requires: list[Plugin] = field(default_factory=list)
    installs: dict[str, tuple[bool, bool]] = field(default_factory=dict)
    ratings: dict[str, int] = field(default_factory=dict)

    def has(self, user: str) -> bool:
        return self.installs.get(user, (False, False))[0]

    def is_on(self, user: str) -> bool:
        return self.installs.get(user, (False, False)) == (True, True)

    @property
    def shown(self) -> dict[str, Any]:
        stars = list(self.ratings.values())
        return {
            "id": self.id,
            "name": self.name,
            "status": self.status,
            "featured": self.featured,
            "download_count": len(self.installs),
            "rating_count": len(stars),
            "rating_average": round(sum(stars) / len(stars), 2) if stars else None,
        }


class Walk:
    """The model, and the actors who walk."""

    def __init__(self, market: Market, users: dict[str, Actor], chance: random.Random) -> None:
        self.market = market
        self.users = users
        self.chance = chance
        self.plugins: list[Plugin] = []
        self.prefix = fresh("walk")

    def sees(self, who: str, plugin: Plugin) -> bool:
        return plugin.status == "approved" or who in ("admin", plugin.owner)

    def count(self, who: str) -> int:
        return sum(plugin.has(who) for plugin in self.plugins)

    def dependents(self, who: str, plugin: Plugin) -> list[Plugin]:
        return [one for one in self.plugins if plugin in one.requires and one.is_on(who)]

    async def create(self, who: str, _plugin: Plugin | None) -> None:
        """A new draft; a name that is taken is 409."""
        is_taken = self.plugins and self.chance.random() < 0.2
        name = self.chance.choice(self.plugins).name if is_taken else f"{self.prefix} {len(self.plugins)}"
        if not is_taken and len(self.plugins) >= MOST_LISTINGS:
            return
        body = {"name": name, "display_name": name, "author": who}
        answer = await self.users[who].post(PLUGINS, json=body)
        assert answer.status == (409 if is_taken else 201), answer.body
        if not is_taken:
            plugin = Plugin(answer.json()["id"], name, who)
            number = min(len(self.plugins), self.chance.choice((0, 0, 1, 2)))
            plugin.requires = self.chance.sample(self.plugins, number)
            self.market.requires[plugin.id] = [(one.id, one.name) for one in plugin.requires]
            self.plugins.append(plugin)

    async def change(self, who: str, plugin: Plugin) -> None:
        """An author changes drafts and rejected ones, without `featured`; an administrator all."""
        change = self.chance.choice(
            ({"description": fresh("words")}, {"featured": True}, {"featured": False})
        )
        answer = await self.users[who].put(f"{PLUGINS}/{plugin.id}", json=change)
        expected = 200
        if who != "admin":
            expected = 409 if plugin.status not in ("draft", "rejected") else 200
            expected = 403 if "featured" in change else expected
            expected = expected if who == plugin.owner else 404
        assert answer.status == expected, (who, plugin, change, answer.body)
        if expected == 200:
            plugin.featured = bool(change.get("featured", plugin.featured))

    async def try_move(self, who: str, plugin: Plugin) -> None:
        trigger = self.chance.choice(list(MOVES))
        answer = await move(self.users[who], plugin.id, trigger)
        target = MOVES[trigger].get(plugin.status)
        may = who == "admin" or (trigger == "submit" and who == plugin.owner)
        if plugin.status == "rejected" and who != plugin.owner:
            target = None
        expected = 200 if may and target else 409 if may else 404 if trigger == "submit" else 403
        assert answer.status == expected, (who, trigger, plugin, answer.body)
        if expected == 200:
            assert target is not None
            plugin.status, plugin.moves = target, plugin.moves + 1
            assert answer.json()["status"] == target

    async def publish(self, _who: str, plugin: Plugin) -> None:
        """The whole way into the catalog, so that there is something to install."""
        for trigger, source in (("submit", "draft"), ("claim", "submitted"), ("approve", "in_review")):
            if plugin.status == source:
                who = plugin.owner if trigger == "submit" else "admin"
                assert (await move(self.users[who], plugin.id, trigger)).status == 200
                plugin.status, plugin.moves = MOVES[trigger][source], plugin.moves + 1

    async def install(self, who: str, plugin: Plugin) -> None:
        """Approved ones, up to the cap; without what it requires it is there, and disabled."""
        answer = await self.users[who].post(f"{PLUGINS}/{plugin.id}/install")
        missing = [one for one in plugin.requires if not one.has(who)]
        if plugin.status != "approved":
            assert answer.status == 404, answer.body
        elif plugin.has(who):
            assert (answer.status, answer.json()["enabled"]) == (200, plugin.is_on(who))
        elif self.count(who) >= CAP:
            assert (answer.status, answer.json()["code"]) == (409, "too_many_installed")
        else:
            code = answer.json().get("code")
            assert (answer.status, code) == ((409, "dependency_missing") if missing else (200, None))
            assert all(one.name in answer.json()["detail"] for one in missing)
            plugin.installs[who] = (True, not missing)
            self._enable_required(who, [] if missing else plugin.requires)

    def _enable_required(self, who: str, plugins: list[Plugin]) -> list[str]:
        changed = [plugin for plugin in plugins if not plugin.is_on(who)]
        for plugin in changed:
            plugin.installs[who] = (True, True)
        return [plugin.name for plugin in changed]

    async def uninstall(self, who: str, plugin: Plugin) -> None:
        answer = await self.users[who].delete(f"{PLUGINS}/{plugin.id}/uninstall")
        expected = 404 if not plugin.has(who) else 409 if self.dependents(who, plugin) else 200
        assert answer.status == expected, answer.body
        if expected == 200:
            plugin.installs[who] = (False, False)

    async def enable(self, who: str, plugin: Plugin) -> None:
        answer = await self.users[who].post(f"{PLUGINS}/{plugin.id}/enable")
        missing = [one for one in plugin.requires if not one.has(who)]
        expected = 404 if not plugin.has(who) else 409 if missing else 200
        assert answer.status == expected, answer.body
        if expected == 200:
            also = self._enable_required(who, plugin.requires)
            assert sorted(answer.json()["auto_enabled_dependencies"]) == sorted(also)
            plugin.installs[who] = (True, True)

    async def disable(self, who: str, plugin: Plugin) -> None:
        answer = await self.users[who].post(f"{PLUGINS}/{plugin.id}/disable")
        dependents = self.dependents(who, plugin)
        expected = 404 if not plugin.has(who) else 409 if dependents else 200
        assert answer.status == expected, answer.body
        if expected == 200:
            plugin.installs[who] = (True, False)

    async def rate(self, who: str, plugin: Plugin) -> None:
        """Whoever has it, or had it; the second rating replaces the first."""
        stars = self.chance.randint(1, 5)
        answer = await self.users[who].post(f"{PLUGINS}/{plugin.id}/ratings", json={"rating": stars})
        expected = 404 if not self.sees(who, plugin) else 403 if who not in plugin.installs else 201
        assert answer.status == expected, answer.body
        if expected == 201:
            plugin.ratings[who] = stars
            rating = {key: plugin.shown[key] for key in ("rating_count", "rating_average")}
            assert {key: answer.json()[key] for key in rating} == rating

    async def read(self, who: str, plugin: Plugin) -> None:
        answer = await self.users[who].get(f"{PLUGINS}/{plugin.id}")
        assert answer.status == (200 if self.sees(who, plugin) else 404), answer.body
        if answer.status == 200:
            record = answer.json()
            assert {key: record[key] for key in plugin.shown} == plugin.shown

    async def search(self, who: str, plugin: Plugin) -> None:
        """The exact name first, when it is approved; never what is not."""
        page = (await self.users[who].get(f"{PLUGINS}/search", params={"q": plugin.name})).json()
        ids = [one["id"] for one in page["plugins"]]
        assert (plugin.id in ids) == (plugin.status == "approved")
        if plugin.status == "approved":
            assert ids[0] == plugin.id

    async def list_own(self, who: str, _plugin: Plugin) -> None:
        """The caller's installs, and its own listings of every status."""
        mine = (await self.users[who].get("/v1/marketplace/installations/me")).json()
        enabled = {one["plugin_id"]: one["enabled"] for one in mine["installations"]}
        assert enabled == {one.id: one.is_on(who) for one in self.plugins if one.has(who)}
        page = (await self.users[who].get(f"{SUBMISSIONS}/mine?limit=100")).json()
        own = {one["id"]: one["status"] for one in page["plugins"]}
        assert own == {one.id: one.status for one in self.plugins if one.owner == who}

    async def check_all(self) -> None:
        """At the end: every record, every history, every list."""
        for plugin in self.plugins:
            await self.read("admin", plugin)
            history = (await self.users["admin"].get(f"{SUBMISSIONS}/{plugin.id}/history")).json()
            assert history["count"] == plugin.moves
        for who in self.users:
            await self.list_own(who, self.plugins[0])

    async def step(self) -> None:
        who = self.chance.choice(list(self.users))
        deeds: list[tuple[Callable[[str, Plugin], Awaitable[None]], int]] = [
            (self.create, 6),
            (self.change, 5),
            (self.try_move, 12),
            (self.publish, 6),
            (self.install, 14),
            (self.uninstall, 6),
            (self.enable, 5),
            (self.disable, 5),
            (self.rate, 6),
            (self.read, 6),
            (self.search, 4),
            (self.list_own, 3),
        ]
        deed = self.chance.choices([one for one, _ in deeds], [weight for _, weight in deeds])[0]
        if not self.plugins:
            deed = self.create
        await deed(who, self.chance.choice(self.plugins) if self.plugins else None)  # type: ignore[arg-type]


async def test_every_answer_is_the_models(market: Market, request: pytest.FixtureRequest) -> None:
    """Whatever four accounts do in whatever order, the answers are those of the model."""
    seed = 7 if request.config.getoption("leak_seed") else random.randrange(10**6)
    users = {name: await market.user() for name in ("ann", "bob", "eve")}
    walk = Walk(market, {**users, "admin": await market.fresh_admin()}, random.Random(seed))
    for number in range(request.config.getoption("market_steps")):
        try:
            await walk.step()
        except AssertionError as error:
            raise AssertionError(f"step {number} of the walk with seed {seed}: {error}") from error
    await walk.check_all()
