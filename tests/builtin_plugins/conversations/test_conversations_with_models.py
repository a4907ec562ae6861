"""Conversations with a scripted model: follow-ups made whole by it, and what its failures leave behind."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import text

from kernel.testing import Running, eventually, platforms
from tests.builtin_plugins.conversations.talk_support import OSLO, Talk, fresh, listed, open_talk, turns
from tests.builtin_plugins.rag.rag_support import ask_raw
from tests.fakes.loaded_once import LoadedOnce
from tests.fakes.model_server import Json, ModelServer, Refusal, Script, Turn, model_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

BERGEN = "How much may a hotel in Bergen cost?"
WHOLE = json.dumps({"question": BERGEN})
ANSWER = "It may cost 130 EUR [1]. That is not much."


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[ModelServer]:
    async with model_server(Script()) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory, server: ModelServer) -> AsyncIterator[Running]:
    async with platforms(tmp_path_factory.mktemp("talk")) as start:
        plugins = (LoadedOnce, "models", "rag_methods", "extractive_answers", "conversations")
        yield await start(*plugins, env={"OPENAI_BASE_URL": server.url})


@pytest_asyncio.fixture(loop_scope="module")
async def talk(running: Running) -> Talk:
    return await open_talk(running)


def is_rewriting(body: Json) -> bool:
    """Whether a request asks for the whole question."""
    return "Write that question" in str(body["messages"][0]["content"])


def play(server: ModelServer, whole: str | Refusal, answer: str | Refusal = ANSWER, **script: Any) -> None:
    """Have the model say `whole` when asked for the whole question, `answer` otherwise."""

    def turn(body: Json) -> Turn | Refusal:
        said = whole if is_rewriting(body) else answer
        return Turn(said) if isinstance(said, str) else said

    server.script = Script(turn=turn, models=("llama3.2",), **script)
    server.requests.clear()


def prompts(server: ModelServer) -> list[Json]:
    """The bodies of the generations that were asked for."""
    return [one.body for one in server.requests if one.path.endswith("/chat/completions")]


async def test_the_model_makes_it_whole(server: ModelServer, talk: Talk) -> None:
    """One call more; passages are found for the whole question, and the answer sees the turn before."""
    mine = fresh()
    play(server, WHOLE)
    await talk.ask(talk.ann, mine)
    assert len(prompts(server)) == 1
    answer = await talk.ask(talk.ann, mine, "and in Bergen?")
    told = answer["method_details"]["conversation"]
    assert (told["question"], told["rewritten_by"]) == (BERGEN, "model")
    assert answer["model_calls"] == 2
    last = json.dumps(prompts(server)[-1], ensure_ascii=False)
    assert BERGEN in last and "That is not much." in last and "95 EUR" in last


@pytest.mark.parametrize("broken", ['{"question": "How much', "{}", "Sure! Bergen.", ""])
async def test_a_broken_verdict(server: ModelServer, talk: Talk, broken: str) -> None:
    """After one more try the rules carry the subject over, and the details say so."""
    mine = fresh()
    play(server, broken)
    await talk.ask(talk.ann, mine)
    answer = await talk.ask(talk.ann, mine, "and in Bergen?")
    told = answer["method_details"]["conversation"]
    assert (told["question"], told["rewritten_by"]) == (BERGEN, "rules")
    assert any("follow-up" in note for note in answer["method_details"]["degraded"])


async def test_the_runtime_dies(server: ModelServer, talk: Talk) -> None:
    """503 in either call, and nothing of the question is stored."""
    mine = fresh()
    play(server, WHOLE)
    await talk.ask(talk.ann, mine)
    for whole, answer in ((Refusal(500), ANSWER), (WHOLE, Refusal(500))):
        play(server, whole, answer)
        refused = await ask_raw(talk.ann, talk.pipeline, "and in Bergen?", conversation_id=mine)
        assert refused.status == 503
    assert [one["question"] for one in await turns(talk.ann, mine)] == [OSLO]
    assert await unanswered(talk) == 0


async def test_it_dies_in_the_second_of_three_calls(server: ModelServer, talk: Talk) -> None:
    """The question is made whole, a passage is to be imagined, an answer never asked for: nothing stays."""
    mine = fresh()
    play(server, WHOLE)
    await talk.ask(talk.ann, mine)
    play(server, WHOLE, Refusal(500))
    refused = await ask_raw(talk.ann, talk.pipeline, "and in Bergen?", conversation_id=mine, method="hyde")
    assert refused.status == 503
    systems = [str(body["messages"][0]["content"]) for body in prompts(server)]
    assert is_rewriting(prompts(server)[0]) and systems[-1].startswith("Write one short paragraph")
    assert not any(one.startswith("You answer questions") for one in systems)
    assert [one["question"] for one in await turns(talk.ann, mine)] == [OSLO]
    assert await unanswered(talk) == 0


async def test_a_first_question_that_fails_makes_no_conversation(server: ModelServer, talk: Talk) -> None:
    mine = fresh()
    play(server, WHOLE, Refusal(500))
    assert (await ask_raw(talk.ann, talk.pipeline, OSLO, conversation_id=mine)).status == 503
    assert mine not in await listed(talk.ann)
    assert await unanswered(talk) == 0


async def test_a_client_that_leaves(server: ModelServer, talk: Talk) -> None:
    """The question of a stream that nobody reads to its end is forgotten."""
    mine = fresh()
    play(server, WHOLE, "word " * 400, pause_s=0.02)
    url = f"{talk.running.url}/v1/rag/pipeline/{talk.pipeline}/query"
    headers = {"Authorization": f"Bearer {talk.ann.token}", "Accept": "text/event-stream"}
    body = {"question": OSLO, "conversation_id": mine}
    async with talk.running.session.post(url, json=body, headers=headers) as stream:
        await stream.content.readuntil(b"\n\n")

    async def forgotten() -> bool:
        return await unanswered(talk) == 0

    await eventually(forgotten)
    assert mine not in await listed(talk.ann)


async def test_questions_at_once_keep_their_order(server: ModelServer, talk: Talk) -> None:
    mine = fresh()
    play(server, WHOLE)
    await talk.ask(talk.ann, mine, "How much may a hotel in Oslo cost, to begin with?")
    play(server, WHOLE, pause_s=0.2)
    slow = asyncio.create_task(
        talk.ask(talk.ann, mine, "How much may a hotel in Oslo cost at most in winter?")
    )

    async def begun() -> bool:
        return await unanswered(talk) == 1

    await eventually(begun)
    play(server, WHOLE)
    await talk.ask(talk.ann, mine, "How much may a hotel in Oslo cost at most in summer?")
    await slow
    found = [one["question"].rpartition(" ")[2] for one in await turns(talk.ann, mine)]
    assert found == ["with?", "winter?", "summer?"]


async def test_what_the_model_was_shown_goes_too(server: ModelServer, talk: Talk) -> None:
    """A later answer's words without a citation may stem from a turn before: they go with its document."""
    mine = fresh()
    play(server, WHOLE)
    await talk.ask(talk.ann, mine, metadata_filter={"document_id": talk.hotels})
    question = "How much is the daily allowance for meals?"
    play(server, json.dumps({"question": question}), "Meals are 42 EUR [1]. As I said, hotels cost 130 EUR.")
    await talk.ask(talk.ann, mine, question, metadata_filter={"document_id": talk.meals})
    await talk.forget(talk.hotels)
    for _ in range(2):
        _, second = await turns(talk.ann, mine)
        assert (second["answer"], second["withheld"]) == ("Meals are 42 EUR [1]. […]", True)
        assert [one["source"] for one in second["sources"]] == ["meals.md"]
        await talk.running.run_jobs()


async def unanswered(talk: Talk) -> int:
    """Questions that wait for an answer."""
    query = text("SELECT count(*) FROM conversations_turn WHERE answered_at IS NULL")
    return int(await talk.running.platform.database.read(lambda session: session.scalar(query)) or 0)
