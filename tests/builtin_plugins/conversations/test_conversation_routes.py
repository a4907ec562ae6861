"""Conversations over HTTP: kept, read, shared, renamed, exported, deleted; what leaves with a document."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from builtin_plugins.conversations.services.removal import TIDY
from kernel.sdk import NoPayload, Unit, utc_now
from kernel.testing import Running, platforms
from tests.builtin_plugins.conversations.talk_support import (
    MINE,
    OSLO,
    SHARED,
    Talk,
    fresh,
    listed,
    open_talk,
    shared_with,
    turns,
)
from tests.builtin_plugins.rag.rag_support import (
    ask,
    ask_raw,
    make_base,
    make_pipeline,
    problems,
    somebody,
)
from tests.builtin_plugins.rag.test_versions import NEW, OLD, QUESTION, placed, put
from tests.fakes.deleting import delete_account
from tests.fakes.keeping import Keeper
from tests.fakes.loaded_once import LoadedOnce

pytestmark = pytest.mark.asyncio(loop_scope="session")


class TestKeeping:
    async def test_a_conversation_is_made_when_asked(self, talk: Talk) -> None:
        mine = fresh()
        answer = await talk.ask(talk.ann, mine)
        assert answer["method_details"]["conversation"]["conversation_id"] == mine
        [turn] = await turns(talk.ann, mine)
        assert (turn["question"], turn["answer"]) == (OSLO, answer["answer"])
        assert turn["turn_id"] == answer["method_details"]["conversation"]["turn_id"]
        assert turn["sources"][0]["chunk_id"] == answer["sources"][0]["chunk_id"]
        assert "text" not in turn["sources"][0]
        section = answer["sources"][0]["section"]
        assert section in ("Hotels", "Meals") and turn["sources"][0]["section"] == section
        quotes = answer["sources"][0]["quotes"]
        assert quotes and turn["sources"][0]["quotes"] == quotes
        assert (turn["model_used"], turn["method"]) == ("extractive", "standard")

    async def test_a_citation_names_its_version(self, talk: Talk) -> None:
        """And that a newer one took its place."""
        ann = await somebody(talk.running)
        base, mine = await make_base(ann), fresh()
        old = await placed(talk.running, await put(ann, base, "travel.md", OLD))
        pipeline = await make_pipeline(ann, base)
        await ask(ann, pipeline, QUESTION, conversation_id=mine)
        [source] = (await turns(ann, mine))[0]["sources"]
        assert (source["version"], source["sha256"], source["superseded_at"]) == (1, old["sha256"], None)
        await placed(talk.running, await put(ann, base, "travel.md", NEW))
        [source] = (await turns(ann, mine))[0]["sources"]
        assert (source["version"], source["sha256"]) == (1, old["sha256"])
        assert source["superseded_at"] is not None

    async def test_the_list(self, talk: Talk) -> None:
        """Id, time, last and first question; the latest first; only what the caller began."""
        ann = await somebody(talk.running)
        first, second = fresh(), fresh()
        for conversation, city in ((first, "Oslo"), (second, "Oslo"), (first, "Bergen")):
            await talk.ask(ann, conversation, f"How much may a hotel in {city} cost? {'x' * 300}")
        body = (await ann.get(MINE + "?limit=1")).json()
        assert (body["total"], body["limit"], body["items"][0]["conversation_id"]) == (2, 1, first)
        last, begun = body["items"][0]["snippet"], body["items"][0]["first_question"]
        assert (len(last), "Bergen" in last, len(begun), "Oslo" in begun) == (200, True, 200, True)
        assert first not in await listed(talk.bob)
        assert (await ann.get(MINE + "?limit=101")).status == 422

    async def test_a_stream_is_kept_too(self, talk: Talk) -> None:
        mine = fresh()
        path = f"/v1/rag/pipeline/{talk.pipeline}/query"
        headers = {"Accept": "text/event-stream"}
        body = {"question": OSLO, "conversation_id": mine}
        assert b"event: done" in (await talk.ann.post(path, json=body, headers=headers)).body
        assert len(await turns(talk.ann, mine)) == 1

    async def test_many_questions_at_once(self, talk: Talk) -> None:
        mine = fresh()
        wanted = [f"How much may a hotel in Oslo cost, case {n}?" for n in range(8)]
        answers = await asyncio.gather(*(talk.ask(talk.ann, mine, question) for question in wanted))
        found = await turns(talk.ann, mine)
        assert sorted(one["question"] for one in found) == sorted(wanted)
        ids = [one["turn_id"] for one in found]
        assert ids == sorted(set(ids))
        told = {answer["method_details"]["conversation"]["turn_id"] for answer in answers}
        assert told == set(ids)

    async def test_a_question_that_is_refused_leaves_nothing(self, talk: Talk) -> None:
        mine = fresh()
        nowhere = "00000000-0000-4000-8000-000000000000"
        assert (await ask_raw(talk.ann, nowhere, OSLO, conversation_id=mine)).status == 404
        assert mine not in await listed(talk.ann)
        assert (await talk.ann.get(f"/v1/conversations/{mine}")).status == 404

    @pytest.mark.parametrize("conversation", ["", "x" * 256, "mine", 7])
    async def test_bad_ids(self, talk: Talk, conversation: object) -> None:
        """422 naming the field."""
        refused = await ask_raw(talk.ann, talk.pipeline, OSLO, conversation_id=conversation)
        assert "body.conversation_id" in problems(refused)


class TestFollowUps:
    async def test_the_subject_is_carried_over(self, talk: Talk) -> None:
        mine = fresh()
        await talk.ask(talk.ann, mine)
        answer = await talk.ask(talk.ann, mine, "and in Bergen?")
        assert "95 EUR" in answer["answer"]
        told = answer["method_details"]["conversation"]
        assert told["question"] == "How much may a hotel in Bergen cost?"
        assert (told["rewritten_by"], told["turns"]) == ("rules", 1)
        again = await talk.ask(talk.ann, mine, "And in Oslo?")
        assert "130 EUR" in again["answer"]
        assert [one["question"] for one in await turns(talk.ann, mine)][1:] == [
            "and in Bergen?",
            "And in Oslo?",
        ]

    async def test_history_is_the_callers(self, talk: Talk) -> None:
        """Another account's conversation of the same id is another one."""
        mine = fresh()
        await talk.ask(talk.ann, mine)
        answer = await talk.ask(talk.bob, mine, "and in Bergen?")
        assert answer["method_details"]["conversation"]["turns"] == 0
        assert len(await turns(talk.ann, mine)) == len(await turns(talk.bob, mine)) == 1


class TestSharing:
    async def test_whoever_may_ask_reads_and_writes(self, talk: Talk) -> None:
        mine = fresh()
        await talk.ask(talk.ann, mine)
        for _ in range(2):
            shared = await talk.share(talk.ann, mine)
            assert (shared.status, shared.json()) == (200, {"conversation_id": mine, "shared": True})
        answer = await talk.ask(talk.bob, mine, "and in Bergen?")
        assert "95 EUR" in answer["answer"]
        for actor in (talk.ann, talk.bob):
            assert [one["question"] for one in await turns(actor, mine)] == [OSLO, "and in Bergen?"]
        assert (await turns(talk.ann, mine))[1]["asked_by"] == str(talk.bob.user["id"])
        assert mine not in await listed(talk.bob) and (await listed(talk.ann))[mine]["shared"] is True
        page = (await talk.bob.get(f"/v1/rag/pipeline/{talk.pipeline}/conversations")).json()
        assert mine in [one["conversation_id"] for one in page["items"]]

    async def test_shared_with_me(self, running: Running) -> None:
        """Lists what others share in pipelines that the caller may use, latest first, in pages.

        It leaves out the caller's own conversations, those not shared, and those of pipelines that the caller
        can no longer see. Administrators see no more than others.
        """
        talk = await open_talk(running)
        admin = await running.user(role="admin")
        private = await make_pipeline(talk.ann, talk.base)
        first, second, own, kept, hidden = (fresh() for _ in range(5))
        for actor, conversation in ((talk.ann, first), (talk.ann, second), (talk.bob, own), (talk.ann, kept)):
            await talk.ask(actor, conversation)
        await ask(talk.ann, private, OSLO, conversation_id=hidden)
        for actor, conversation in ((talk.ann, first), (talk.ann, second), (talk.bob, own)):
            assert (await talk.share(actor, conversation)).status == 200
        elsewhere = f"/v1/rag/pipeline/{private}/conversations/{hidden}/share"
        assert (await talk.ann.post(elsewhere)).status == 200
        mine = {first, second, own, kept, hidden}
        assert [one for one in await shared_with(talk.bob) if one in mine] == [second, first]
        assert [one for one in await shared_with(admin) if one in mine] == [own, second, first]
        page = (await talk.bob.get(SHARED, params={"limit": 1, "offset": 1})).json()
        assert (page["limit"], page["offset"], len(page["items"])) == (1, 1, 1)
        await talk.ann.patch(f"/v1/rag/pipeline/{talk.pipeline}", json={"visibility": "private"})
        assert {first, second}.isdisjoint(await shared_with(talk.bob))

    async def test_only_who_began_it(self, talk: Talk) -> None:
        """Others who see it: 403. Who does not see it: 404, like an unknown one."""
        mine, nobody = fresh(), fresh()
        await talk.ask(talk.ann, mine)
        path = f"/v1/conversations/{mine}"
        unknown = await talk.bob.post(talk.sharing(nobody))
        hidden = await talk.share(talk.bob, mine)
        assert (hidden.status, hidden.json()["detail"]) == (404, unknown.json()["detail"])
        for refused in (
            await talk.bob.get(path),
            await talk.bob.get(path + "/turns"),
            await talk.bob.get(path + "/export"),
            await talk.bob.patch(path, json={"title": "Mine"}),
            await talk.bob.delete(path),
        ):
            assert (refused.status, refused.json()["code"]) == (404, "conversation_not_found")
        await talk.share(talk.ann, mine)
        for refused in (
            await talk.share(talk.bob, mine),
            await talk.bob.patch(path, json={"title": "Mine"}),
            await talk.bob.delete(path),
            await talk.bob.delete(talk.sharing(mine)),
        ):
            assert (refused.status, refused.json()["code"]) == (403, "not_first_writer")
        assert (await talk.ann.delete(talk.sharing(mine))).json()["shared"] is False
        assert (await talk.bob.get(path)).status == 404

    async def test_who_loses_the_pipeline_loses_the_thread(self, running: Running) -> None:
        talk = await open_talk(running)
        mine = fresh()
        await talk.ask(talk.ann, mine)
        await talk.share(talk.ann, mine)
        assert len(await turns(talk.bob, mine)) == 1
        await talk.ann.patch(f"/v1/rag/pipeline/{talk.pipeline}", json={"visibility": "private"})
        assert (await talk.bob.get(f"/v1/conversations/{mine}")).status == 404
        assert len(await turns(talk.ann, mine)) == 1

    async def test_one_id_is_shared_once(self, talk: Talk) -> None:
        mine = fresh()
        await talk.ask(talk.ann, mine)
        await talk.ask(talk.bob, mine)
        assert (await talk.share(talk.ann, mine)).status == 200
        refused = await talk.share(talk.bob, mine)
        assert (refused.status, refused.json()["code"]) == (409, "already_shared")
        other = await make_pipeline(talk.ann, talk.base)
        elsewhere = await talk.ann.post(f"/v1/rag/pipeline/{other}/conversations/{mine}/share")
        assert (elsewhere.status, elsewhere.json()["code"]) == (409, "already_shared")


class TestChanging:
    async def test_rename_and_delete(self, talk: Talk) -> None:
        mine = fresh()
        await talk.ask(talk.ann, mine)
        path = f"/v1/conversations/{mine}"
        assert (await talk.ann.patch(path, json={"title": " Hotels "})).json()["title"] == "Hotels"
        assert (await listed(talk.ann))[mine]["title"] == "Hotels"
        assert (await talk.ann.patch(path, json={"title": None})).json()["title"] is None
        assert "body.title" in problems(await talk.ann.patch(path, json={"title": "x" * 201}))
        assert (await talk.ann.delete(path)).status == 204
        assert (await talk.ann.get(path + "/turns")).status == 404
        assert mine not in await listed(talk.ann)

    async def test_delete_all(self, talk: Talk) -> None:
        """Everything that one began, and nothing else."""
        carl = await somebody(talk.running)
        mine = fresh()
        await talk.ask(talk.ann, mine)
        for _ in range(3):
            await talk.ask(carl, fresh())
        assert (await carl.delete(MINE)).json() == {"deleted": 3}
        assert await listed(carl) == {} and mine in await listed(talk.ann)

    async def test_export(self, talk: Talk) -> None:
        """One, or all that one began, as a file."""
        carl = await somebody(talk.running)
        for conversation in ("one", "two"):
            await talk.ask(carl, conversation)
        answer = await carl.get(MINE + "/export")
        assert answer.headers["Content-Disposition"].startswith("attachment")
        bundle = answer.json()
        assert (bundle["format"], bundle["version"]) == ("platform.conversations", 1)
        assert [one["conversation_id"] for one in bundle["conversations"]] == ["one", "two"]
        single = (await carl.get("/v1/conversations/two/export")).json()["conversations"]
        assert [turn["question"] for turn in single[0]["items"]] == [OSLO]


class TestDeletedDocuments:
    async def test_nothing_of_it_is_quoted(self, running: Running) -> None:
        """At once in what is read, and after the event in what is stored; the rest of the thread stays."""
        talk = await open_talk(running)
        mine = fresh()
        assert "130 EUR" in (await talk.ask(talk.ann, mine))["answer"]
        assert (
            "42 EUR"
            in (await talk.ask(talk.ann, mine, "How much is the daily allowance for meals?"))["answer"]
        )
        await talk.forget(talk.hotels)
        for read in (
            await talk.ann.get(f"/v1/conversations/{mine}/turns"),
            await talk.ann.get(MINE + "/export"),
        ):
            assert b"130 EUR" not in read.body and b"hotels.md" not in read.body and b"42 EUR" in read.body
        first, second = await turns(talk.ann, mine)
        assert (first["withheld"], second["withheld"]) == (True, False)
        await running.run_jobs()
        stored = await running.platform.database.read(_stored, mine)
        assert len(stored) > 2 and not any(talk.hotels in row or "130 EUR" in row for row in stored)
        assert (await turns(talk.ann, mine))[0]["withheld"] is True

    async def test_a_document_that_one_may_no_longer_read(self, running: Running) -> None:
        talk, mine, question = await open_talk(running), fresh(), "How high is the bonus of the director?"
        keeper = Keeper(running.platform, talk.base)
        await keeper.put("bonus.md", "The bonus of the director is 7,700 EUR.", keeper.readers("board"))
        await keeper.members(board=[talk.ann.user["id"]])
        await running.run_jobs()
        assert "7,700 EUR" in (await talk.ask(talk.ann, mine, question))["answer"]
        await talk.share(talk.ann, mine)
        assert b"7,700" not in (await talk.bob.get(f"/v1/conversations/{mine}/turns")).body
        await keeper.members(board=[talk.bob.user["id"]])
        assert b"7,700" not in (await talk.ann.get(f"/v1/conversations/{mine}/turns")).body
        assert b"7,700" not in (await talk.ann.get(MINE + "/export")).body
        assert "7,700 EUR" in (await turns(talk.bob, mine))[0]["answer"]

    async def test_a_document_out_of_sight(self, running: Running) -> None:
        """A reader of a shared thread sees no words of a knowledge base that only its owner may read."""
        talk = await open_talk(running)
        mine = fresh()
        await talk.ask(talk.ann, mine)
        await talk.share(talk.ann, mine)
        assert "130 EUR" in (await turns(talk.bob, mine))[0]["answer"]
        await talk.ann.patch(f"/v1/rag/knowledge-bases/{talk.base}", json={"visibility": "private"})
        hidden = await talk.bob.get(f"/v1/conversations/{mine}/turns")
        assert b"130 EUR" not in hidden.body and hidden.json()["items"][0]["withheld"] is True
        assert "130 EUR" in (await turns(talk.ann, mine))[0]["answer"]

    async def test_with_the_knowledge_base(self, running: Running) -> None:
        talk = await open_talk(running)
        mine = fresh()
        await talk.ask(talk.ann, mine)
        wanted = {"confirm_delete_pipeline_ids": [talk.pipeline]}
        path = f"/v1/rag/knowledge-bases/{talk.base}"
        assert (await talk.ann.request("DELETE", path, json=wanted)).status == 200
        assert b"130 EUR" not in (await talk.ann.get(f"/v1/conversations/{mine}/turns")).body


def _stored(session: Session, conversation: str) -> list[str]:
    of_thread = "thread_id = (SELECT id FROM conversations_thread WHERE conversation_id = :id)"
    queries = (
        f"SELECT * FROM conversations_turn WHERE {of_thread}",
        "SELECT * FROM conversations_citation WHERE turn_id IN"
        f" (SELECT id FROM conversations_turn WHERE {of_thread})",
    )
    return [
        str(tuple(row)) for query in queries for row in session.execute(text(query), {"id": conversation})
    ]


async def test_old_conversations_go(tmp_path: Path) -> None:
    """After `retention_days` without a question; and questions that a killed process left."""
    env = {"PLATFORM_CONVERSATIONS_RETENTION_DAYS": "30"}
    async with platforms(tmp_path) as start:
        running = await start(LoadedOnce, "models", "rag", "extractive_answers", "conversations", env=env)
        talk = await open_talk(running)
        old, new = fresh(), fresh()
        for conversation in (old, new):
            await talk.ask(talk.ann, conversation)

        def prepare(unit: Unit) -> None:
            then = (utc_now() - timedelta(days=31)).replace(tzinfo=None)
            values = {"then": str(then), "id": old}
            unit.session.execute(
                text("UPDATE conversations_thread SET last_activity = :then WHERE conversation_id = :id"),
                values,
            )
            unit.session.execute(
                text(
                    "INSERT INTO conversations_turn (thread_id, asked_by, pipeline_id, question, pieces,"
                    " withheld, model_used, method, sources_count, confidence, asked_at)"
                    " SELECT id, 'x', 'x', 'left behind', '[]', false, '', '', 0, 0, :then"
                    " FROM conversations_thread WHERE conversation_id = :new"
                ),
                {"then": str(then), "new": new},
            )
            unit.enqueue(TIDY, NoPayload())

        await running.platform.database.write(prepare)
        assert len(await turns(talk.ann, new)) == 1
        await running.run_jobs()
        assert set(await listed(talk.ann)) == {new}
        left = await running.platform.database.read(
            lambda session: session.scalar(
                text("SELECT count(*) FROM conversations_turn WHERE question = 'left behind'")
            )
        )
        assert left == 0


async def test_the_account_is_deleted(talk: Talk) -> None:
    """Conversations that it started are gone, even shared ones; others' stay, with its questions in them."""
    eve, own, shared, bobs = await somebody(talk.running), fresh(), fresh(), fresh()
    for conversation in (own, shared):
        await talk.ask(eve, conversation)
    assert (await talk.share(eve, shared)).status == 200
    await talk.ask(talk.bob, bobs)
    assert (await talk.share(talk.bob, bobs)).status == 200
    await talk.ask(eve, bobs, "And how much may a hotel in Bergen cost?")
    await delete_account(talk.running, eve)
    assert shared not in await shared_with(talk.bob)
    assert (await talk.bob.get(f"/v1/rag/v1/conversations/{shared}")).status == 404
    query = text("SELECT count(*) FROM conversations_thread WHERE holder = :holder")
    holder = {"holder": str(eve.user["id"])}
    left = await talk.running.platform.database.read(lambda session: session.scalar(query, holder))
    assert left == 0
    first, second = await turns(talk.bob, bobs)
    assert first["question"] == OSLO and "Bergen" in second["question"]
