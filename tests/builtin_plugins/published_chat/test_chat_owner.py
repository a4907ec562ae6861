"""What an owner reads of the visitors: sessions, answers, ratings, figures; and what nobody reads."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text, update

from builtin_plugins.published_chat.models import VisitorSession
from builtin_plugins.published_chat.services.retention import TIDY
from builtin_plugins.rag import api as rag
from kernel.sdk import PLUGIN_STATES, NoPayload, Plugin, Unit, hookimpl, utc_now
from kernel.testing import Running, platforms
from tests.builtin_plugins.published_chat.page_support import (
    ENDPOINTS,
    HOTEL,
    OTHER_PAGE,
    PAGE,
    PLUGINS,
    ROOMY,
    Shop,
    fresh_slug,
    here,
    open_shop,
)
from tests.fakes.deleting import delete_account

pytestmark = pytest.mark.asyncio(loop_scope="session")

NOBODY_KNOWS = "Who invented the telescope in Middelburg?"


async def items(shop: Shop, path: str) -> list[dict[str, Any]]:
    """A page of what the owner reads."""
    answer = await shop.owner.get(f"{shop.path}/{path}")
    assert answer.status == 200, answer.body
    return list(answer.json()["items"])


async def test_sessions_and_their_turns(running: Running) -> None:
    shop = await open_shop(running, allowed_origins=f"{PAGE},{OTHER_PAGE}")
    one = await here(shop)
    first = (await one.ask()).json()
    second = (await one.ask(NOBODY_KNOWS)).json()
    await one.rate(first["turn_id"], "up", comment="Exactly what I needed")
    await (await here(shop, OTHER_PAGE)).ask()
    other, mine = await items(shop, "sessions")
    assert (mine["origin"], mine["turns"], mine["refused"]) == (PAGE, 2, 1)
    assert (mine["up"], mine["down"], other["origin"], other["turns"]) == (1, 0, OTHER_PAGE, 1)
    turns = await items(shop, f"sessions/{mine['session_id']}/turns")
    assert [turn["turn_id"] for turn in turns] == [first["turn_id"], second["turn_id"]]
    assert [turn["question"] for turn in turns] == [HOTEL, NOBODY_KNOWS]
    assert "130 EUR" in turns[0]["answer"] and turns[0]["sources"] == ["handbook.md"]
    assert (turns[0]["rating"], turns[0]["comment"]) == ("up", "Exactly what I needed")
    assert turns[1]["rating"] is None


async def test_ratings(running: Running) -> None:
    """The latest first, of one kind if one wants; a second rating of the same answer replaces the first."""
    shop = await open_shop(running)
    visitor = await here(shop)
    turns = [(await visitor.ask()).json()["turn_id"] for _ in range(3)]
    for turn, rating in zip(turns, ("up", "down", "up"), strict=True):
        assert (await visitor.rate(turn, rating, comment=f"about {turn}")).status == 204
    assert [one["turn_id"] for one in await items(shop, "feedback")] == turns[::-1]
    [bad] = await items(shop, "feedback?rating=down")
    assert (bad["turn_id"], bad["comment"], bad["refused"]) == (turns[1], f"about {turns[1]}", False)
    await visitor.rate(turns[1], "up")
    assert await items(shop, "feedback?rating=down") == []
    assert (await items(shop, "feedback"))[0]["turn_id"] == turns[1]


async def test_figures(running: Running) -> None:
    shop = await open_shop(running)
    visitor = await here(shop)
    good = (await visitor.ask()).json()["turn_id"]
    await visitor.ask(NOBODY_KNOWS)
    await visitor.rate(good, "down")
    await visitor.rate(good, "up")
    figures = (await shop.owner.get(f"{shop.path}/figures?days=1")).json()
    [today] = figures["items"]
    counted = {"questions": 2, "answered": 1, "refused": 1, "failed": 0, "up": 1, "down": 0}
    assert counted.items() <= today.items() and counted.items() <= figures.items()
    assert today["day"] == utc_now().date().isoformat()


async def test_a_session_is_deleted_with_its_conversation(running: Running) -> None:
    """The visitor finds nothing of it, and continues with a token that still counts; the figures stay."""
    shop = await open_shop(running)
    visitor = await here(shop)
    await visitor.ask()
    assert len((await visitor.session()).json()["messages"]) == 1
    [session] = await items(shop, "sessions")
    path = f"{shop.path}/sessions/{session['session_id']}"
    assert (await shop.owner.delete(path)).status == 204
    assert (await shop.owner.delete(path)).status == 404
    assert await items(shop, "sessions") == []
    assert (await visitor.session()).json()["messages"] == []
    assert (await shop.owner.get(f"{shop.path}/figures")).json()["questions"] == 1


async def test_old_sessions_leave(running: Running) -> None:
    """Sessions without a question for the days of the setting are deleted with their turns."""
    shop = await open_shop(running)
    old, young = await here(shop), await here(shop)
    await old.ask()
    await young.ask()
    _, session = await items(shop, "sessions")
    aged = update(VisitorSession).where(VisitorSession.id == session["session_id"])

    def prepare(unit: Unit) -> None:
        unit.session.execute(aged.values(last_activity=utc_now() - timedelta(days=91)))
        unit.enqueue(TIDY, NoPayload())

    await running.platform.database.write(prepare)
    await running.run_jobs()
    assert [one["session_id"] != session["session_id"] for one in await items(shop, "sessions")] == [True]
    assert (await old.session()).json()["messages"] == []
    assert len((await young.session()).json()["messages"]) == 1


class Twice(Plugin):
    """Brings a method of answering."""

    name = "twice"

    @hookimpl(optionalhook=True)
    def register_methods(self) -> list[rag.QueryMethod]:
        return [rag.QueryMethod("twice", "Searches as always.", self.find)]

    async def find(self, work: rag.QuestionWork) -> Sequence[rag.Passage]:
        return await work.search(rag.SearchPlan(work.question))


async def test_an_unknown_method_is_refused(shop: Shop) -> None:
    config = {"method": "nope"}
    body = {"name": "Support", "slug": fresh_slug(), "pipeline_id": shop.pipeline, "rag_config": config}
    made = await shop.owner.post(ENDPOINTS, json=body)
    changed = await shop.owner.patch(shop.path, json={"rag_config": config})
    for answer in (made, changed):
        assert answer.status == 422, answer.body
        [problem] = answer.json()["detail"]
        assert problem["loc"] == ["body", "rag_config", "method"] and "self_rag" in problem["msg"]
    assert (await shop.owner.patch(shop.path, json={"rag_config": {"method": "Standard"}})).status == 200
    assert (await (await here(shop)).ask()).status == 200


async def test_a_method_whose_plugin_is_switched_off(tmp_path: Path) -> None:
    async with platforms(tmp_path / "home") as start:
        running = await start(*PLUGINS, Twice(), env=ROOMY)
        shop = await open_shop(running, rag_config={"method": "twice"})
        visitor = await here(shop)
        assert (await visitor.ask()).status == 200
        states = running.platform.resource(PLUGIN_STATES)
        states.switch_off(["twice"])
        assert (await shop.owner.get(shop.path)).json()["state"] == "method_gone"
        assert (await shop.owner.get(ENDPOINTS)).json()["items"][0]["state"] == "method_gone"
        assert (await visitor.ask()).json()["code"] == "chat_closed"
        assert (await shop.visitor().page()).status == 503
        states.switch_off([])
        assert (await shop.owner.get(shop.path)).json()["state"] == "open"
        assert (await visitor.ask()).status == 200


async def test_nobody_keeps_a_visitors_address(tmp_path: Path) -> None:
    """Whoever asks, rates and is refused too often leaves no address in any file of the platform."""
    address = "198.51.100.77"
    env = {**ROOMY, "TRUSTED_PROXY_CIDRS": "127.0.0.0/8", "PLATFORM_PUBLISHED_CHAT_ADDRESS_RATE": "2"}
    async with platforms(tmp_path / "home") as start:
        running = await start(*PLUGINS, env=env)
        shop = await open_shop(running)
        visitor = await here(shop)
        headers = visitor.headers(**{"X-Forwarded-For": address})
        statuses = []
        for _ in range(4):
            answer = await running.anonymous.post(
                f"/v1/chat/{shop.slug}/messages", json={"question": HOTEL}, headers=headers
            )
            statuses.append(answer.status)
        assert statuses.count(200) == 2 and statuses[-1] == 429
        files = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
        assert len(files) > 3
        assert [path.name for path in files if address.encode() in path.read_bytes()] == []


async def test_the_owner_is_deleted(running: Running) -> None:
    """The chat is gone with its visitors' sessions and conversations; another account's chat stays."""
    shop, other = await open_shop(running), await open_shop(running)
    assert (await (await here(shop)).ask()).status == 200
    visitor = await here(other)
    await delete_account(running, shop.owner)
    assert (await shop.visitor().page()).status == 404
    held = text("SELECT count(*) FROM conversations_thread WHERE holder LIKE :holder")
    holder = {"holder": f"published_chat:{shop.endpoint['id']}%"}
    assert await running.platform.database.read(lambda session: session.scalar(held, holder)) == 0
    assert (await visitor.ask()).status == 200
    assert (await running.anonymous.get(f"/v1/chat/{shop.slug}")).status == 404
