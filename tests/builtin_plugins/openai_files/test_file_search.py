"""Responses with the tool `file_search`, by OpenAI's own SDK: with a model, and without any."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from kernel.testing import Actor, Running
from tests.builtin_plugins.orchestrator.chat_support import HOTEL, Stage, stage_with
from tests.builtin_plugins.rag.rag_support import HANDBOOK, ingest, make_base, somebody
from tests.fakes.kept import Kept
from tests.fakes.model_server import Turn
from tests.fakes.protocols import with_protocols

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types.responses import Response

pytestmark = pytest.mark.asyncio(loop_scope="session")

RESULTS: Any = ["file_search_call.results"]


@dataclass
class FileAnswering:
    """A vector store with the handbook, asked through the SDK."""

    running: Running
    client: AsyncOpenAI
    base: str

    def tools(self, **fields: Any) -> Any:
        return [{"type": "file_search", "vector_store_ids": [self.base], **fields}]

    async def ask(self, question: str = HOTEL, **fields: Any) -> Response:
        sent: Any = {"model": "llama3.2", "input": question, "tools": self.tools(), **fields}
        return await self.client.responses.create(**sent)


@dataclass
class Writing(FileAnswering):
    """Answers by a scripted model."""

    stage: Stage


def sdk(running: Running, actor: Actor) -> AsyncOpenAI:
    from openai import AsyncOpenAI  # it takes a second in each process of a run

    return AsyncOpenAI(base_url=f"{running.url}/v1/ai", api_key=str(actor.token), max_retries=0)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def quoting(kept: Kept) -> AsyncIterator[FileAnswering]:
    """Without a model."""
    running = await with_protocols(kept)
    ann = await somebody(running)
    base = await make_base(ann)
    await ingest(running, ann, base, "handbook.md", HANDBOOK)
    async with sdk(running, ann) as client:
        yield FileAnswering(running, client, base)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def writing(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Writing]:
    """With a scripted model."""
    folder = tmp_path_factory.mktemp("writing")
    async with (
        stage_with(folder, "openai", None, "openai_files", documents=True) as stage,
        sdk(stage.running, stage.ann) as client,
    ):
        yield Writing(stage.running, client, stage.base, stage)


def parts(response: Response) -> tuple[Any, Any]:
    """The item of the search, and the text of the answer with its annotations."""
    search, message = response.output
    assert (search.type, message.type) == ("file_search_call", "message")
    return search, message.content[0]


async def test_quoted_answer(quoting: FileAnswering) -> None:
    response = await quoting.ask(include=RESULTS)
    search, text = parts(response)
    assert (response.model, response.status) == ("extractive", "completed")
    assert "130 EUR" in response.output_text and search.queries == [HOTEL]
    cited = text.annotations[0]
    assert (cited.type, cited.filename) == ("file_citation", "handbook.md")
    assert cited.file_id == search.results[0].file_id and "130 EUR" in search.results[0].text
    assert response.output_text[cited.index] == "["
    assert (await quoting.client.files.retrieve(cited.file_id)).filename == "handbook.md"


async def test_results_only_if_included(quoting: FileAnswering) -> None:
    search, _ = parts(await quoting.ask())
    assert search.results is None


async def test_filter_that_leaves_nothing(quoting: FileAnswering) -> None:
    elsewhere = {"type": "eq", "key": "filename", "value": "other.md"}
    response = await quoting.ask(tools=quoting.tools(filters=elsewhere), include=RESULTS)
    search, text = parts(response)
    assert not search.results and not text.annotations and "130" not in response.output_text


@pytest.mark.long
async def test_written_answer(writing: Writing) -> None:
    writing.stage.play(Turn("A hotel may cost 130 EUR [1]."))
    response = await writing.ask(temperature=0.1, max_output_tokens=300)
    _, text = parts(response)
    assert (response.model, response.output_text) == ("llama3.2", "A hotel may cost 130 EUR [1].")
    assert [(one.type, one.index) for one in text.annotations] == [("file_citation", 25)]
    assert response.usage and response.usage.total_tokens == 18
    prompt = writing.stage.prompts[-1]
    assert prompt["temperature"] == 0.1 and "130 EUR" in str(prompt["messages"])


@pytest.mark.long
async def test_stream(writing: Writing) -> None:
    writing.stage.play(Turn("A hotel may cost 130 EUR [1]."))
    kinds, indexes = [], []
    sent: Any = {"model": "llama3.2", "input": HOTEL, "tools": writing.tools(), "include": RESULTS}
    async with writing.client.responses.stream(**sent) as stream:
        async for event in stream:
            kinds.append(event.type)
            indexes += [event.output_index] if event.type == "response.output_text.delta" else []
        whole = await stream.get_final_response()
    assert kinds[:6] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.file_search_call.in_progress",
        "response.file_search_call.searching",
        "response.file_search_call.completed",
    ]
    assert "response.output_text.annotation.added" in kinds and set(indexes) == {1}
    search, text = parts(whole)
    assert search.results and text.annotations[0].type == "file_citation"


@pytest.mark.long
async def test_earlier_turns_with_searches_are_taken(writing: Writing) -> None:
    writing.stage.play()
    first = await writing.ask()
    before: Any = [one.model_dump(exclude_none=True) for one in first.output]
    asked: Any = [{"role": "user", "content": HOTEL}, *before, {"role": "user", "content": "And breakfast?"}]
    assert (await writing.ask(input=asked)).status == "completed"


@pytest.mark.parametrize(
    ("tools", "param"),
    [
        ([{"type": "file_search"}], "tools.0.vector_store_ids"),
        ([{"type": "file_search", "vector_store_ids": []}], "tools.0.vector_store_ids"),
        ("filters", "tools.0.filters.key"),
        ("twice", "tools.1"),
        ([{"type": "web_search"}], "tools.0"),
    ],
)
async def test_errors_name_the_field(quoting: FileAnswering, tools: Any, param: str) -> None:
    from openai import UnprocessableEntityError

    unknown = {"type": "eq", "key": "no", "value": 1}
    wrong = {"filters": quoting.tools(filters=unknown), "twice": quoting.tools() * 2}
    with pytest.raises(UnprocessableEntityError) as error:
        await quoting.ask(tools=wrong[tools] if isinstance(tools, str) else tools)
    assert error.value.param == param


async def test_strangers_are_told_nothing(quoting: FileAnswering) -> None:
    other = await somebody(quoting.running)
    body = {"model": "x", "input": HOTEL, "tools": quoting.tools()}
    answer = await other.post("/v1/responses", json=body)
    assert answer.status == 404 and "130" not in str(answer.body)


async def test_what_was_left_out_is_said(quoting: FileAnswering) -> None:
    beep = {"type": "function", "name": "beep", "parameters": {"type": "object"}, "strict": False}
    tools = [*quoting.tools(ranking_options={"score_threshold": 0.5}), beep]
    response = await quoting.ask(tools=tools, instructions="Be brief.")
    said = (response.model_extra or {})["platform_degraded"]
    assert {one.split(":")[0] for one in said} == {
        "tools",
        "instructions",
        "ranking_options.score_threshold",
    }
