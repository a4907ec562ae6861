"""What visitors get: page data, sessions, answers, ratings; and what they don't."""

from __future__ import annotations

import asyncio

import pytest

from kernel.testing import Running
from tests.builtin_plugins.published_chat.page_support import (
    ENDPOINTS,
    HOTEL,
    OTHER_PAGE,
    PAGE,
    Shop,
    fresh_slug,
    here,
    open_shop,
    publish,
)
from tests.builtin_plugins.rag.rag_support import make_pipeline
from tests.fakes.keeping import Keeper

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_page_data(shop: Shop) -> None:
    """Name and texts, for allowed pages and for who sends no origin; nothing of the owner."""
    answer = await shop.visitor().page()
    assert (answer.status, answer.json()["name"]) == (200, "Support")
    assert set(answer.json()) == {"slug", "name", "greeting", "placeholder"}
    assert (await shop.visitor(None).page()).status == 200
    assert (await shop.visitor(OTHER_PAGE).page()).status == 403


async def test_an_answer_cites_its_sources(shop: Shop) -> None:
    """The answer, what it cites, and a turn to rate; no id of a document or knowledge base."""
    visitor = await here(shop)
    answer = await visitor.ask()
    assert answer.status == 200, answer.body
    body = answer.json()
    assert "130 EUR" in body["answer"] and body["refused"] is False
    assert body["sources"][0]["number"] == 1 and body["sources"][0]["source"] == "handbook.md"
    assert body["sources"][0]["section"] == "Travel handbook › Hotels"
    assert shop.base.encode() not in answer.body and shop.document.encode() not in answer.body


async def test_an_answer_as_a_stream(shop: Shop) -> None:
    events = await (await here(shop)).stream()
    assert [name for name, _ in events[-1:]] == ["done"]
    told = "".join(value["text"] for name, value in events if name == "token")
    assert told == events[-1][1]["answer"] and "130 EUR" in told


async def test_a_question_that_nothing_answers(shop: Shop) -> None:
    body = (await (await here(shop)).ask("Who invented the telescope in Middelburg?")).json()
    assert (body["refused"], body["sources"]) == (True, [])


class TestOrigins:
    async def test_missing_or_foreign_origins(self, shop: Shop) -> None:
        """403 on every write, for the session too, whatever else was right."""
        token = (await here(shop)).token
        for origin in (None, OTHER_PAGE, "null", PAGE + ".evil.example", "http://www.example.org"):
            visitor = shop.visitor(origin)
            assert (await visitor.session()).json()["code"] == "origin_refused", origin
            visitor.token = token
            for answer in (await visitor.ask(), await visitor.rate(1), await visitor.session()):
                assert (answer.status, answer.json()["code"]) == (403, "origin_refused"), origin

    @pytest.mark.parametrize(
        ("origin", "said"), [(None, "missing"), (f"https://{'a' * 900}.example", "too long")]
    )
    async def test_what_is_wrong_with_an_origin(self, shop: Shop, origin: str | None, said: str) -> None:
        refused = await shop.visitor(origin).session()
        assert (refused.status, refused.json()["code"]) == (403, "origin_refused") and said in refused.detail

    async def test_no_origin_is_allowed_by_default(self, shop: Shop) -> None:
        closed = await publish(shop.owner, shop.pipeline, allowed_origins=None)
        visitor = shop.visitor()
        visitor.slug = closed["slug"]
        assert (await visitor.session()).status == 403
        changed = await shop.owner.patch(f"/v1/rag/endpoints/{closed['id']}", json={"allowed_origins": "*"})
        assert changed.status == 200
        assert (await visitor.session()).status == 200
        visitor.origin = None
        assert (await visitor.session()).status == 403

    async def test_pages_read_answers_and_refusals(self, shop: Shop) -> None:
        path = f"/v1/chat/{shop.slug}/messages"
        asked = {
            "Origin": PAGE,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,content-type",
        }
        preflight = await shop.running.anonymous.request("OPTIONS", path, headers=asked)
        assert preflight.status == 204
        assert preflight.headers["Access-Control-Allow-Origin"] == "*"
        answer = await shop.visitor(OTHER_PAGE).ask()
        assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (403, "*")
        assert "Access-Control-Allow-Credentials" not in answer.headers


class TestTokens:
    async def test_a_token_is_bound(self, shop: Shop) -> None:
        visitor = await here(shop)
        both = f"{PAGE} {OTHER_PAGE}"
        other = await publish(shop.owner, shop.pipeline, allowed_origins=both)
        moved = await shop.owner.patch(shop.path, json={"allowed_origins": both})
        assert moved.status == 200
        try:
            elsewhere = shop.visitor()
            elsewhere.slug, elsewhere.token = other["slug"], visitor.token
            assert (await elsewhere.ask()).json()["code"] == "visitor_token_invalid"
            assert (await elsewhere.session()).status == 401
            foreign = shop.visitor(OTHER_PAGE)
            foreign.token = visitor.token
            assert (await foreign.ask()).status == 401
        finally:
            await shop.owner.patch(shop.path, json={"allowed_origins": PAGE})

    async def test_without_a_visitors_token(self, shop: Shop) -> None:
        visitor = shop.visitor()
        for token in (None, "", "x.y.z", "plk_0000", shop.owner.token):
            visitor.token = token
            assert [answer.status for answer in (await visitor.ask(), await visitor.rate(1))] == [401, 401]

    async def test_a_session_goes_on(self, shop: Shop) -> None:
        """A second session call with the token keeps the session, and returns its turns."""
        visitor = await here(shop)
        turn = (await visitor.ask()).json()["turn_id"]
        await visitor.rate(turn, "down")
        again = (await visitor.session()).json()
        assert [(one["turn_id"], one["question"], one["rating"]) for one in again["messages"]] == [
            (turn, HOTEL, "down")
        ]
        assert "130 EUR" in again["messages"][0]["answer"]
        assert (await here(shop)).token != visitor.token


class TestFeedback:
    async def test_a_rating_is_the_sessions_own(self, shop: Shop) -> None:
        """Another session's turn, and one that is not, are 404; a second rating replaces the first."""
        visitor, other = await here(shop), await here(shop)
        turn = (await visitor.ask()).json()["turn_id"]
        assert (await other.rate(turn)).json()["code"] == "turn_not_found"
        assert (await visitor.rate(2**30)).status == 404
        assert (await visitor.rate(turn, "down", comment="No")).status == 204
        assert (await visitor.rate(turn, "up", comment="Yes")).status == 204
        page = (await shop.owner.get(shop.path + "/feedback")).json()
        mine = [one for one in page["items"] if one["turn_id"] == turn]
        assert [(one["rating"], one["comment"]) for one in mine] == [("up", "Yes")]


class TestBounds:
    async def test_bodies(self, shop: Shop) -> None:
        """More than 64 KiB are refused."""
        assert (await (await here(shop)).ask("x" * 70_000)).status == 413

    async def test_unknown_slugs(self, shop: Shop) -> None:
        visitor = shop.visitor()
        visitor.slug = "nowhere"
        for answer in (
            await visitor.page(),
            await visitor.session(),
            await visitor.ask(),
            await visitor.rate(1),
        ):
            assert (answer.status, answer.json()["code"]) == (404, "chat_not_found")
        assert (await shop.running.anonymous.get("/v1/chat/nowhere/widget.js")).status == 404


class TestLimits:
    """A minute may end in the middle of a test, so each asks as much as two of them allow, and one more."""

    async def test_of_a_session(self, shop: Shop) -> None:
        """Above ten questions in a minute: 429 with the time to wait. Other sessions go on."""
        visitor = await here(shop)
        answers = await asyncio.gather(*(visitor.ask() for _ in range(21)))
        refused = [answer for answer in answers if answer.status != 200]
        assert refused and all(answer.status == 429 for answer in refused)
        assert int(refused[0].headers["Retry-After"]) <= 60
        assert (await (await here(shop)).ask()).status == 200

    async def test_of_an_endpoint(self, shop: Shop) -> None:
        made = await publish(shop.owner, shop.pipeline, rate_limit_per_minute=2)
        statuses = []
        for _ in range(5):
            visitor = shop.visitor()
            visitor.slug = made["slug"]
            await visitor.session()
            statuses.append((await visitor.ask()).status)
        assert statuses[0] == 200 and 429 in statuses

    async def test_of_a_day(self, shop: Shop) -> None:
        """At the cap of a day the chat says so, and when it goes on; exact under load."""
        made = await publish(shop.owner, shop.pipeline, daily_questions=3)
        visitor = shop.visitor()
        visitor.slug = made["slug"]
        await visitor.session()
        answers = await asyncio.gather(*(visitor.ask() for _ in range(5)))
        assert sorted(answer.status for answer in answers) == [200, 200, 200, 429, 429]
        refused = next(answer for answer in answers if answer.status == 429)
        assert refused.json()["code"] == "daily_limit" and int(refused.headers["Retry-After"]) <= 86_400


class TestClosed:
    """The endpoint answers with its owner's rights of this moment."""

    async def closed(self, shop: Shop, why: str) -> None:
        """503 in the same words on every route; the owner's record says why."""
        visitor = shop.visitor()
        for answer in (await visitor.page(), await visitor.session()):
            assert (answer.status, answer.json()["code"]) == (503, "chat_closed")
        if why != "owner_inactive":
            assert (await shop.owner.get(shop.path)).json()["state"] == why

    async def test_disabled(self, running: Running) -> None:
        shop = await open_shop(running)
        visitor = await here(shop)
        await shop.owner.patch(shop.path, json={"enabled": False})
        await self.closed(shop, "disabled")
        assert (await visitor.ask()).status == 503
        await shop.owner.patch(shop.path, json={"enabled": True})
        assert (await visitor.ask()).status == 200

    async def test_owner_deactivated(self, running: Running) -> None:
        """A session that was open gets nothing more."""
        shop = await open_shop(running)
        visitor = await here(shop)
        admin = await running.user(role="admin")
        path = f"/v1/auth/users/{shop.owner.user['id']}/status"
        assert (await admin.patch(path, json={"is_active": False})).status == 200
        assert (await visitor.ask()).json()["code"] == "chat_closed"
        await self.closed(shop, "owner_inactive")

    async def test_pipeline_deleted(self, running: Running) -> None:
        shop = await open_shop(running)
        visitor = await here(shop)
        assert (await shop.owner.delete(f"/v1/rag/pipeline/{shop.pipeline}")).status == 200
        assert (await visitor.ask()).json()["code"] == "chat_closed"
        await self.closed(shop, "pipeline_gone")

    async def test_knowledge_base_lost(self, running: Running) -> None:
        shop = await open_shop(running)
        colleague = await open_shop(running)
        shared = f"/v1/rag/knowledge-bases/{colleague.base}"
        body = {"visibility": "shared", "publishing": "allowed"}
        assert (await colleague.owner.patch(shared, json=body)).status == 200
        pipeline = f"/v1/rag/pipeline/{shop.pipeline}"
        moved = await shop.owner.patch(pipeline, json={"knowledge_base_ids": [colleague.base]})
        assert moved.status == 200
        visitor = await here(shop)
        assert "130 EUR" in (await visitor.ask()).json()["answer"]
        await colleague.owner.patch(shared, json={"visibility": "private"})
        assert (await visitor.ask()).json()["code"] == "chat_closed"
        await self.closed(shop, "no_knowledge_base")


class TestPublishing:
    """Whoever may read a knowledge base may not for that reason show it to strangers."""

    async def test_reading_is_not_publishing(self, running: Running) -> None:
        """A pipeline over another's knowledge base is published only with that owner's permission, and
        closed without it.
        """
        shop, colleague = await open_shop(running), await open_shop(running)
        shared = f"/v1/rag/knowledge-bases/{colleague.base}"
        await colleague.owner.patch(shared, json={"visibility": "shared"})
        assert (await shop.owner.patch(shared, json={"publishing": "allowed"})).status == 403
        mixed = await make_pipeline(shop.owner, shop.base, colleague.base)
        body = {"name": "x", "slug": fresh_slug(), "pipeline_id": mixed, "allowed_origins": "*"}
        refused = await shop.owner.post(ENDPOINTS, json=body)
        assert (refused.status, refused.json()["code"]) == (403, "publishing_not_allowed")
        moved = await shop.owner.patch(shop.path, json={"pipeline_id": mixed})
        assert (moved.status, moved.json()["code"]) == (403, "publishing_not_allowed")
        # Nor by changing the pipeline behind a chat that is open.
        visitor = await here(shop)
        bases = {"knowledge_base_ids": [shop.base, colleague.base]}
        assert (await shop.owner.patch(f"/v1/rag/pipeline/{shop.pipeline}", json=bases)).status == 200
        assert (await visitor.ask()).json()["code"] == "chat_closed"
        assert (await shop.owner.get(shop.path)).json()["state"] == "publishing_not_allowed"
        assert (await colleague.owner.patch(shared, json={"publishing": "allowed"})).status == 200
        assert (await visitor.ask()).status == 200
        assert (await shop.owner.post(ENDPOINTS, json=body)).status == 201

    async def test_the_owner_sees_and_ends_what_publishes(self, running: Running) -> None:
        shop, colleague = await open_shop(running), await open_shop(running)
        shared = f"/v1/rag/knowledge-bases/{colleague.base}"
        await colleague.owner.patch(shared, json={"visibility": "shared", "publishing": "allowed"})
        bases = {"knowledge_base_ids": [colleague.base]}
        await shop.owner.patch(f"/v1/rag/pipeline/{shop.pipeline}", json=bases)
        chats = (await colleague.owner.get(f"{shared}/chats")).json()
        assert chats["total"] == 2
        theirs = next(one for one in chats["items"] if one["id"] == shop.endpoint["id"])
        assert theirs["owner"] == shop.owner.user["username"]
        assert (theirs["slug"], theirs["allowed_origins"], theirs["state"]) == (shop.slug, PAGE, "open")
        assert (await shop.owner.get(f"{shared}/chats")).status == 403
        assert (await colleague.owner.get(f"/v1/rag/knowledge-bases/{shop.base}/chats")).status == 404
        path = f"{shared}/chats/{shop.endpoint['id']}"
        assert (await shop.owner.delete(path)).status == 403
        assert (await colleague.owner.delete(path)).status == 204
        assert (await shop.owner.get(shop.path)).json()["state"] == "disabled"
        elsewhere = f"{shared}/chats/{(await open_shop(running)).endpoint['id']}"
        assert (await colleague.owner.delete(elsewhere)).status == 404


async def test_a_deleted_document_is_not_quoted(running: Running) -> None:
    shop = await open_shop(running)
    visitor = await here(shop)
    assert "130 EUR" in (await visitor.ask()).json()["answer"]
    path = f"/v1/rag/knowledge-bases/{shop.base}/documents/{shop.document}"
    assert (await shop.owner.delete(path)).status == 200
    restored = (await visitor.session()).json()["messages"]
    assert len(restored) == 1 and "130" not in restored[0]["answer"]
    sessions = (await shop.owner.get(shop.path + "/sessions")).json()["items"]
    turns = await shop.owner.get(f"{shop.path}/sessions/{sessions[0]['session_id']}/turns")
    assert b"130 EUR" not in turns.body and turns.json()["items"][0]["withheld"] is True


async def test_visitors_are_answered_from_what_everybody_may_read(running: Running) -> None:
    """Not from documents with readers, even if the chat's owner is one of them."""
    shop = await open_shop(running)
    keeper, question = Keeper(running.platform, shop.base), "How much is the bonus of the director?"
    text = "The bonus of the director is 7,700 EUR."
    await keeper.put("bonus.md", text, keeper.readers("board"))
    await keeper.members(board=[shop.owner.user["id"]])
    await running.run_jobs()
    visitor = await here(shop)
    assert "7,700" not in (await visitor.ask(question)).json()["answer"]
    await keeper.grant({"bonus.md": keeper.readers("board", everybody=True)})
    assert "7,700 EUR" in (await visitor.ask(question)).json()["answer"]
    assert "7,700 EUR" in (await visitor.session()).json()["messages"][-1]["answer"]
    await keeper.grant({"bonus.md": keeper.readers("board")})
    assert "7,700" not in (await visitor.session()).body.decode()


async def test_the_widget(shop: Shop) -> None:
    """A script that any page may load."""
    answer = await shop.running.anonymous.get(f"/v1/chat/{shop.slug}/widget.js")
    assert answer.headers["Content-Type"].startswith("text/javascript")
    assert answer.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
