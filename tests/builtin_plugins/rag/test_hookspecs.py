"""What other plugins add to the answering of a question: rankings that they improve, methods of their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

import pytest
import pytest_asyncio
from pydantic import BaseModel

from builtin_plugins.documents import api as documents
from builtin_plugins.rag import api as rag
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import Caller, Platform, Plugin, hookimpl
from kernel.testing import Actor, Running, platforms
from tests.builtin_plugins.rag.rag_support import (
    ask,
    ask_raw,
    ingest,
    make_base,
    make_pipeline,
    path_of,
    problems,
    somebody,
)
from tests.fakes.loaded_once import LoadedOnce

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTION = "Who repairs the pump?"
TEXTS = {
    "pump.md": "The pump stands in the cellar. Its repair is a task of the house service.",
    "service.md": "The house service is led by Berit Solheim. She answers the telephone until six.",
    "garden.md": "Roses are pruned in March.",
}
PATH = [rag.PathStep("pump", "repaired by", "house service")]

Enhance = Callable[[Sequence[rag.Passage], rag.RankingScope], Any]
Chosen = Sequence[rag.Passage]


class Verdict(BaseModel):
    """What the test's method asks the model for."""

    fits: Literal["yes", "no"]


@dataclass
class Walker(Plugin):
    """Improves rankings as a test says, and brings two methods."""

    name = "walker"
    answer: Enhance = field(default=lambda passages, scope: None)
    calls: list[tuple[str, rag.RankingScope]] = field(default_factory=list)
    method: Callable[[rag.QuestionWork], Awaitable[Chosen]] | None = None

    @hookimpl
    async def enhance_ranking(
        self, caller: Caller, question: str, passages: Sequence[rag.Passage], scope: rag.RankingScope
    ) -> Sequence[rag.RankedPassage] | None:
        self.calls.append((question, scope))
        answer = self.answer(passages, scope)
        ranked: Sequence[rag.RankedPassage] | None = await answer if asyncio.iscoroutine(answer) else answer
        return ranked

    @hookimpl
    def register_methods(self) -> Sequence[rag.QueryMethod]:
        return [
            rag.QueryMethod("twice", "Searches twice", self._find),
            rag.QueryMethod("standard", "Not this one", self._find),
        ]

    async def _find(self, work: rag.QuestionWork) -> Chosen:
        assert self.method is not None
        return await self.method(work)


@dataclass
class Stage:
    """A platform with the plugin, and an account with three documents in two knowledge bases."""

    running: Running
    walker: Walker
    ann: Actor
    base: str
    other: str
    documents: dict[str, str]
    pipeline: str

    async def chunk(self, name: str, base: str | None = None) -> str:
        path = path_of(base or self.base, self.documents[name], "/chunks")
        return str((await self.ann.get(path)).json()["items"][0]["chunk_id"])

    async def place(self, name: str, score: float, **fields: Any) -> rag.RankedPassage:
        kb = self.other if name == "garden.md" else self.base
        chunk = await self.chunk(name, kb)
        return rag.RankedPassage(kb, self.documents[name], chunk, score, **fields)

    async def search(self, **fields: Any) -> list[dict[str, Any]]:
        body = {"question": QUESTION, "graph": True, **fields}
        answer = await self.ann.post(f"/v1/rag/pipeline/{self.pipeline}/search", json=body)
        assert answer.status == 200, answer.body
        return list(answer.json()["items"])

    async def ask(self, **fields: Any) -> dict[str, Any]:
        return await ask(self.ann, self.pipeline, QUESTION, **{"graph": True, "explain": True, **fields})


class Careless(Plugin):
    """Declares one thing where a list is wanted."""

    name = "careless"
    requires = ("rag",)

    def __init__(self, declared: Any) -> None:
        self.declared = declared

    @hookimpl
    def register_parsers(self) -> Any:
        return self.declared


@pytest.mark.parametrize("declared", [documents.DocumentParser("a", ["text/x-a"], "a.b:c", str), 4, ["a"]])
async def test_a_wrong_declaration(tmp_path: Path, declared: Any) -> None:
    """Its own plugin is out of service with the reason, and not the one that asked for it."""
    async with platforms(tmp_path / "home") as start:
        running = await start("rag_methods", "extractive_answers", Careless(declared))
        found = (await running.anonymous.get("/health")).json()["plugins"]
        assert found["rag"]["status"] == "loaded"
        assert found["careless"]["status"] == "failed"
        assert found["careless"]["reason"].startswith("register_parsers returned a")
        assert "return Sequence[DocumentParser]" in found["careless"]["reason"]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    walker = Walker()
    async with platforms(tmp_path_factory.mktemp("hooks")) as start:
        env = {"PLATFORM_RAG_ENHANCE_SECONDS": "0.2"}
        running = await start(LoadedOnce, "models", "rag_methods", "extractive_answers", walker, env=env)
        ann = await somebody(running)
        base, other = await make_base(ann), await make_base(ann)
        documents = {}
        for name, text in TEXTS.items():
            place = other if name == "garden.md" else base
            documents[name] = (await ingest(running, ann, place, name, text))["document_id"]
        pipeline = await make_pipeline(ann, base)
        yield Stage(running, walker, ann, base, other, documents, pipeline)


@pytest.fixture
def stage(shared: Stage) -> Stage:
    """The stage with a plugin that says nothing."""
    shared.walker.answer = lambda passages, scope: None
    shared.walker.calls.clear()
    shared.walker.method = None
    return shared


def always(places: Sequence[rag.RankedPassage]) -> Enhance:
    """A plugin that answers the same to everybody."""
    return lambda passages, scope: places


def names(answer: dict[str, Any]) -> list[str]:
    return [source["source"] for source in answer["sources"]]


class TestEnhanceRanking:
    async def test_only_when_asked_for(self, stage: Stage) -> None:
        """Without `graph: true` no plugin is asked; with it, it learns what it may rank."""
        await stage.ask(graph=False)
        assert stage.walker.calls == []
        await stage.ask(metadata_filter={"source": "pump.md"}, top_k=3)
        ((question, scope),) = stage.walker.calls
        assert question == QUESTION and scope.limit >= 3
        assert scope.knowledge_base_ids == [stage.base]
        assert scope.document_ids == [stage.documents["pump.md"]]

    async def test_adds_a_passage_with_its_path(self, stage: Stage) -> None:
        """What the search missed joins the ranking, with its text, the graph's score and the way to it."""
        assert names(await stage.ask(top_k=1, graph=False)) == ["pump.md"]
        place = await stage.place("service.md", 1.0, path=PATH)
        for index in (None, 0, 7):  # unknown, known, known wrongly
            added = rag.RankedPassage(
                place.knowledge_base_id, place.document_id, place.chunk_id, 1.0, PATH, index
            )
            stage.walker.answer = always([added])
            (source,) = await stage.search(top_k=1)
            assert source["text"] == TEXTS["service.md"]
            assert source["path"] == ["pump —repaired by→ house service"]
            assert source["scores"]["graph"] == source["score"] == 1.0

    async def test_orders_anew(self, stage: Stage) -> None:
        """Passages get the score that the plugin gives them; what it leaves out keeps its own."""
        first, second = [item["source"] for item in await stage.search(graph=False)]
        place = await stage.place(second, 0.999)
        stage.walker.answer = always([place])
        items = await stage.search()
        scores = [item["score"] for item in items]
        assert scores == sorted(scores, reverse=True)
        assert {item["source"]: "graph" in item["scores"] for item in items} == {first: False, second: True}

    async def test_an_answer_goes_by_it(self, stage: Stage) -> None:
        place = await stage.place("service.md", 1.0, path=PATH)
        stage.walker.answer = always([place])
        answer = await stage.ask(top_k=2)
        assert names(answer) == ["service.md", "pump.md"]
        assert [source.get("path") for source in answer["sources"]][1] is None

    @pytest.mark.parametrize("filtered", [False, True])
    async def test_what_is_out_of_scope_is_dropped(self, stage: Stage, filtered: bool) -> None:
        """Passages of another knowledge base, under whatever name, or beyond the filter never come in."""
        foreign = await stage.place("garden.md", 1.0)
        disguised = rag.RankedPassage(stage.base, foreign.document_id, foreign.chunk_id, 1.0)
        unknown = rag.RankedPassage(stage.base, stage.documents["pump.md"], "no-such", 1.0)
        beyond = await stage.place("service.md", 1.0)
        stage.walker.answer = always([foreign, disguised, unknown, beyond])
        wanted = {"source": "pump.md"} if filtered else None
        found = {item["source"] for item in await stage.search(metadata_filter=wanted, top_k=10)}
        assert found == ({"pump.md"} if filtered else {"pump.md", "service.md"})

    async def test_failing_or_late_it_is_skipped(self, stage: Stage) -> None:
        async def late() -> None:
            await asyncio.Event().wait()

        def broken(passages: Any, scope: Any) -> Any:
            raise RuntimeError("secret detail")

        def strange(passages: Any, scope: Any) -> Any:
            return [rag.RankedPassage(passages[0].knowledge_base_id, 7, [], 1.0)]  # type: ignore[arg-type]

        plain = await stage.ask(graph=False)
        for answer, word in (
            (broken, "failed"),
            (strange, "failed"),
            (lambda passages, scope: late(), "longer than 0.2"),
        ):
            stage.walker.answer = answer
            got = await stage.ask()
            (note, *_) = got["method_details"]["degraded"]
            assert "walker" in note and word in note and "secret" not in note
            assert names(got) == names(plain)

    async def test_scores_out_of_range_are_ignored(self, stage: Stage) -> None:
        places = [await stage.place("service.md", score) for score in (7.0, -1.0, float("nan"))]
        stage.walker.answer = always(places)
        assert all("graph" not in item["scores"] for item in await stage.search())


class TestRegisterMethods:
    async def test_a_plugins_method_answers(self, stage: Stage) -> None:
        """It searches, notes and chooses; the answer is written from its choice, under its name."""

        async def find(work: rag.QuestionWork) -> Chosen:
            await work.search(rag.SearchPlan(work.question))
            with work.step("again", "Searching again"):
                again = await work.search(rag.SearchPlan("Who leads the house service?", top_k=1))
            work.details["twice"] = {"searches": 2}
            assert await work.judge("Does it fit?", work.question, Verdict, again) is None
            assert await work.write("Write", work.question) is None
            return again

        stage.walker.method = find
        answer = await stage.ask(method="TWICE", graph=False)
        assert answer["method"] == "twice" and answer["method_details"]["twice"] == {"searches": 2}
        assert "again" in [step["step"] for step in answer["explain"]["steps"]]
        assert len(answer["sources"]) <= 1
        capabilities = (await stage.ann.get("/v1/rag/capabilities")).json()
        assert capabilities["methods"]["twice"] is True

    async def test_it_answers_from_nothing_else(self, stage: Stage) -> None:
        async def find(work: rag.QuestionWork) -> Chosen:
            (best, *_) = await work.search(rag.SearchPlan(work.question))
            return [rag.Passage("Berit.", "x", 1.0, "made-up", best.document_id)]

        stage.walker.method = find
        answer = await stage.ask(method="twice", graph=False)
        assert answer["sources"] == [] and "Berit" not in answer["answer"]

    @pytest.mark.parametrize("chosen", [RuntimeError("secret detail"), None, ["secret passage"]])
    async def test_one_that_fails(self, stage: Stage, chosen: Any) -> None:
        """503 that names method and plugin and nothing of the error, which may be that it chooses nonsense;
        `/health` names the plugin, too.
        """

        async def find(work: rag.QuestionWork) -> Chosen:
            if isinstance(chosen, BaseException):
                raise chosen
            return chosen  # type: ignore[no-any-return]

        stage.walker.method = find
        refused = await ask_raw(stage.ann, stage.pipeline, QUESTION, method="twice")
        assert refused.status == 503 and b"secret" not in refused.body
        assert "'twice'" in refused.detail and "'walker'" in refused.detail
        health = (await stage.running.anonymous.get("/health")).json()
        assert health["plugins"]["walker"]["reason"].startswith("method 'twice' raised")

    async def test_one_that_never_ends(self, stage: Stage) -> None:
        async def find(work: rag.QuestionWork) -> Chosen:
            await asyncio.Event().wait()
            return []

        stage.walker.method = find
        settings = stage.running.platform.settings_of(RagSettings)
        hurried = settings.model_copy(update={"question_seconds": 0.05})
        with patch.object(Platform, "settings_of", lambda platform, cls: hurried):
            refused = await ask_raw(stage.ann, stage.pipeline, QUESTION, method="twice")
        assert refused.status == 503 and "'walker'" in refused.detail and " 0.05 s" in refused.detail

    async def test_a_taken_name_is_refused(self, stage: Stage) -> None:
        """The plugin's `standard` is not ours; an unknown name is answered with all that there are."""
        assert (await stage.ask(method="standard", graph=False))["sources"]
        found = problems(await ask_raw(stage.ann, stage.pipeline, QUESTION, method="magic"))
        assert found["body.method"].endswith("standard, hyde, self_rag, corrective, raptor, auto, twice")
