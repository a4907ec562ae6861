"""The file with all that somebody asked: whole, and read while it is sent."""

from __future__ import annotations

import json

import aiohttp
import pytest
from sqlalchemy import delete, insert, update

from builtin_plugins.conversations.models import Citation, Thread, Turn
from kernel.sdk import Unit
from tests.builtin_plugins.conversations.talk_support import MINE, Talk, overtaken
from tests.builtin_plugins.rag.rag_support import somebody

pytestmark = pytest.mark.asyncio(loop_scope="session")

LARGE = 400_000  # characters: what 50 such answers hold is more than a connection takes up by itself


def _talk_for_years(unit: Unit, subject: str, conversations: int, turns: int, characters: int) -> None:
    now = unit.now()
    for number in range(conversations):
        thread = {"holder": subject, "conversation_id": f"talk-{number}", "last_activity": now}
        made = unit.session.execute(insert(Thread).values(thread).returning(Thread.id)).scalar_one()
        rows = [
            {
                "thread_id": made,
                "asked_by": subject,
                "pipeline_id": "none",
                "question": f"question {number}.{turn}",
                "pieces": [["x" * characters, []]],
                "answered_at": now,
            }
            for turn in range(turns)
        ]
        unit.session.execute(insert(Turn), rows)


async def test_each_turn_in_its_conversation(talk: Talk) -> None:
    """Also where a conversation is longer than what is read at once, and where many are shorter."""
    carl = await somebody(talk.running)
    assert (await carl.get(f"{MINE}/export")).json()["conversations"] == []
    write = talk.running.platform.database.write
    await write(_talk_for_years, str(carl.user["id"]), 3, 70, 1)
    found = (await carl.get(f"{MINE}/export")).json()["conversations"]
    assert [one["conversation_id"] for one in found] == ["talk-0", "talk-1", "talk-2"]
    for number, one in enumerate(found):
        assert one["turns"] == 70 and one["own"] is True
        assert [item["question"] for item in one["items"]] == [f"question {number}.{n}" for n in range(70)]
    one = (await carl.get("/v1/conversations/talk-1/export")).json()["conversations"]
    assert one == [found[1]]


async def test_it_is_read_while_it_is_sent(talk: Talk) -> None:
    """What is deleted after the file has begun is no longer in it: nobody held all of it in memory."""
    carl = await somebody(talk.running)
    write = talk.running.platform.database.write
    await write(_talk_for_years, str(carl.user["id"]), 110, 1, LARGE)
    headers = {"Authorization": f"Bearer {carl.token}"}
    async with (
        aiohttp.ClientSession(headers=headers, read_bufsize=1024) as session,
        session.get(f"{talk.running.url}{MINE}/export") as answer,
    ):
        begun = await answer.content.readexactly(1)
        assert (await carl.delete("/v1/conversations/talk-109")).status == 204
        bundle = json.loads(begun + await answer.content.read())
    names = [one["conversation_id"] for one in bundle["conversations"]]
    assert names == [f"talk-{number}" for number in range(109)]


def _cite_a_secret(unit: Unit, subject: str) -> int:
    of_subject = Turn.asked_by == subject
    cited = update(Turn).where(of_subject).values(pieces=[["a secret [1]", [1]]]).returning(Turn.id)
    turn: int = unit.session.execute(cited).scalar_one()
    place = {"chunk_id": "", "source": "", "char_start": 0, "char_end": 1, "score": 1.0}
    unit.session.add(Citation(turn_id=turn, number=1, document_id="not theirs", **place))
    return turn


def _share(unit: Unit, subject: str, pipeline: str) -> None:
    unit.session.execute(update(Thread).where(Thread.holder == subject).values(shared_pipeline_id=pipeline))


async def test_what_is_shared_no_more_ends(talk: Talk) -> None:
    """Whoever reads slowly gets no turn of a conversation after its owner stopped sharing it."""
    carl, write = await somebody(talk.running), talk.running.platform.database.write
    await write(_talk_for_years, str(carl.user["id"]), 1, 110, LARGE)
    await write(_share, str(carl.user["id"]), talk.pipeline)
    headers = {"Authorization": f"Bearer {talk.bob.token}"}
    async with (
        aiohttp.ClientSession(headers=headers, read_bufsize=1024) as session,
        session.get(f"{talk.running.url}/v1/conversations/talk-0/export") as answer,
    ):
        begun = await answer.content.readexactly(1)
        assert (await carl.delete(talk.sharing("talk-0"))).status == 200
        (found,) = json.loads(begun + await answer.content.read())["conversations"]
    assert found["turns"] == 110 and len(found["items"]) < 110


async def test_what_is_deleted_while_it_is_read(talk: Talk) -> None:
    carl = await somebody(talk.running)
    subject = str(carl.user["id"])
    await talk.running.platform.database.write(_talk_for_years, subject, 2, 3, 1)
    answer = await overtaken(talk, carl.get(f"{MINE}/export"), delete(Thread).where(Thread.holder == subject))
    found = answer.json()["conversations"]
    assert [(one["turns"], len(one["items"])) for one in found] in ([(3, 3), (3, 3)], [])


@pytest.mark.parametrize("path", ["export", "turns"])
async def test_what_loses_its_document_while_it_is_read(talk: Talk, path: str) -> None:
    """What cites a document that the reader can't see stays hidden while the document is being deleted."""
    carl = await somebody(talk.running)
    await talk.running.platform.database.write(_talk_for_years, str(carl.user["id"]), 1, 1, 1)
    turn = await talk.running.platform.database.write(_cite_a_secret, str(carl.user["id"]))
    answer = await overtaken(
        talk,
        carl.get(f"/v1/conversations/talk-0/{path}"),
        update(Turn).where(Turn.id == turn).values(pieces=[[None, [1]]], withheld=True),
        delete(Citation).where(Citation.turn_id == turn),
    )
    assert b"question 0.0" in answer.body and b"secret" not in answer.body
