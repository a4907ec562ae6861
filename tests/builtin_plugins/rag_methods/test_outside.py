"""A method by somebody else does what the built-in ones do: plan, search, grade, draft, judge, delegate."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import pytest
import pytest_asyncio
from pydantic import BaseModel

from builtin_plugins.rag import api as rag
from kernel.sdk import Plugin, hookimpl
from kernel.testing import Actor, Running, platforms
from tests.builtin_plugins.rag.rag_support import (
    HANDBOOK,
    ask,
    ask_raw,
    ingest,
    make_base,
    make_pipeline,
    somebody,
)
from tests.builtin_plugins.rag.scripted import Brain
from tests.builtin_plugins.rag_methods.test_methods import OFFICES
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.model_server import model_server

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "methods.md"
BLOCK = re.compile(r"<!-- tested: method -->\n```python\n(.*?)```", re.DOTALL)
HOTEL = "How much may a hotel cost per night?"
DRAFT = "A hotel may cost up to 130 EUR a night [1]."
REWRITE = "Rewrite the question for a search."
GRADE = "You grade search results. Is the answer there?"
JUDGE = "You judge a draft. Is it right?"


class Fits(BaseModel):
    """The model's verdict."""

    fits: Literal["yes", "no"]


class Thorough(Plugin):
    """Brings two methods: one with phases of its own, one that chooses among others."""

    name = "thorough"
    version = "1.0.0"
    description = "Methods of answering by somebody else."
    author = "tests"
    requires = ("rag",)

    @hookimpl
    def register_methods(self) -> Sequence[rag.QueryMethod]:
        return [
            rag.QueryMethod("thorough", "Grades, drafts and judges.", plan=self.plan, check=self.check),
            rag.QueryMethod("chooser", "Lets others work.", self.find, check=self.finish),
            rag.QueryMethod("inventor", "Answers without searching.", check=self.invent),
            rag.QueryMethod("hyde", "Not this one.", plan=self.plan),
        ]

    async def plan(self, work: rag.QuestionWork) -> rag.SearchPlan:
        if not await work.has_model():
            work.fall_back("there is no model to ask")
            return rag.SearchPlan(work.keywords())
        with work.step("rewrite", "Rewriting the question"):
            text = await work.write(REWRITE, work.question, max_tokens=50)
        work.details["thorough"] = {"kind": work.kind, "rewritten": text}
        if "top_k" not in work.chosen_options:
            work.choose(top_k=3, rerank=True)
        return rag.SearchPlan(text or work.question, imagined="It costs 99 EUR.", trees=True)

    async def check(
        self, work: rag.QuestionWork, found: rag.RetrievedPassages
    ) -> rag.RetrievedPassages | rag.Draft:
        if not await work.has_model():
            return found
        graded = await work.judge(GRADE, work.question, Fits, found)
        measured = await work.support(found)
        again = await work.search(rag.SearchPlan(work.keywords(), top_k=1))
        both = found.of([*found, *(one for one in again if one not in found)])
        draft = await work.draft(both)
        judged = await work.judge(JUDGE, work.question, Fits, found, draft=draft, keep=0)
        work.details["thorough"] |= {
            "graded": graded and graded.fits,
            "judged": judged and judged.fits,
            "probability": measured and measured.probability,
            "lacks": work.lacks(),
        }
        return draft if judged is not None and judged.fits == "yes" else found

    async def find(self, work: rag.QuestionWork) -> rag.RetrievedPassages:
        hyde, standard = work.by("hyde"), work.by("standard")
        assert hyde is not None and standard is not None and work.by("magic") is None
        return await standard.retrieve(await hyde.plan())

    async def finish(
        self, work: rag.QuestionWork, found: rag.RetrievedPassages
    ) -> rag.RetrievedPassages | rag.Draft:
        other = work.by("self_rag")
        assert other is not None
        return await other.check(found)

    async def invent(self, work: rag.QuestionWork, found: rag.RetrievedPassages) -> rag.Draft:
        elsewhere = rag.Passage("Free of charge.", "secret.txt", 1.0, "made-up", found[0].document_id)
        return rag.Draft("A hotel is free [1].", [elsewhere, found[0]], "inventor")


@dataclass
class Stage:
    """A platform with the plugin and a scripted model, and an account with a pipeline."""

    running: Running
    brain: Brain
    ann: Actor
    pipeline: str

    async def ask(self, method: str, **fields: object) -> dict[str, Any]:
        return await ask(self.ann, self.pipeline, HOTEL, method=method, **fields)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with model_server() as server, platforms(tmp_path_factory.mktemp("outside")) as start:
        env = {"OPENAI_BASE_URL": server.url}
        plugins = ("models", "rag_methods", "extractive_answers", HashEmbeddings(), Thorough())
        running = await start(*plugins, env=env)
        ann = await somebody(running)
        base = await make_base(ann, chunk_size=120, chunk_overlap=0)
        await ingest(running, ann, base, "handbook.md", HANDBOOK)
        await ingest(running, ann, base, "offices.md", OFFICES)
        yield Stage(running, Brain(server), ann, await make_pipeline(ann, base))


def fits(value: str) -> str:
    return f'{{"fits": "{value}"}}'


async def test_it_plans_grades_drafts_and_judges(stage: Stage) -> None:
    """The draft that it accepts is the answer; all its calls count against the question's budget."""
    stage.brain.play(rewrite="hotel night price", grade=fits("yes"), judge=fits("yes"), answer=DRAFT)
    answer = await stage.ask("thorough", explain=True)
    assert (answer["answer"], answer["method"], answer["model_calls"]) == (DRAFT, "thorough", 4)
    assert stage.brain.calls == ["rewrite", "grade", "answer", "judge"]
    details = answer["method_details"]
    told = details["thorough"]
    assert (told["kind"], told["rewritten"]) == ("moderate", "hotel night price")
    assert (told["graded"], told["judged"], told["lacks"]) == ("yes", "yes", None)
    assert 0.0 <= told["probability"] <= 1.0
    assert "reranker" not in details and len(answer["sources"]) in (3, 4)
    assert [note.partition(":")[0] for note in details["degraded"]] == ["raptor"]
    assert {"rewrite", "search", "answer"} <= {one["step"] for one in answer["explain"]["steps"]}


async def test_a_draft_that_it_rejects_is_not_shown(stage: Stage) -> None:
    """The answer is then written from the passages that it returns, and what the client said stands."""
    stage.brain.play(
        rewrite="hotel", grade=fits("no"), judge=fits("no"), answer=["I think 5 EUR [1].", DRAFT]
    )
    answer = await stage.ask("thorough", top_k=2)
    assert answer["answer"] == DRAFT and "reranker" not in answer["method_details"]
    assert len(answer["sources"]) == 2
    assert stage.brain.calls == ["rewrite", "grade", "answer", "judge", "answer"]


async def test_others_work_for_it(stage: Stage) -> None:
    """It uses phases of the built-in methods, whose notes carry their names, under its own."""
    verdict = '{"grounded": 1, "complete": 1, "search": ""}'
    stage.brain.play(imagine="It costs 99 EUR.", judge=verdict, answer=DRAFT)
    answer = await stage.ask("chooser")
    assert (answer["answer"], answer["method"]) == (DRAFT, "chooser")
    assert stage.brain.calls == ["imagine", "answer", "judge"]
    assert {"hyde", "self_rag"} <= set(answer["method_details"])


async def test_its_answer_has_no_other_sources(stage: Stage) -> None:
    """A text of its own may be the answer, but cites only what a search for the caller has found."""
    answer = await stage.ask("inventor")
    assert (answer["answer"], answer["model_used"]) == ("A hotel is free [1].", "inventor")
    assert [source["chunk_id"] for source in answer["sources"]] != ["made-up"]
    assert len(answer["sources"]) == 1 and "secret.txt" not in str(answer)


async def test_a_built_in_name_is_refused(stage: Stage) -> None:
    """Of two methods of one name, the built-in one counts, whichever plugin is loaded first."""
    stage.brain.play(imagine="It costs 99 EUR.", answer=DRAFT)
    answer = await stage.ask("hyde")
    assert "thorough" not in answer["method_details"] and "hyde" in answer["method_details"]


async def test_the_method_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example in the documentation works unchanged: a draft that is judged wrong is written again."""
    (code,) = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    (tmp_path / "doubtful.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    module = import_module("doubtful")
    async with model_server() as server, platforms(tmp_path / "homes") as start:
        plugins = ("models", "rag", "extractive_answers", HashEmbeddings(), module.DoubtfulPlugin())
        running = await start(*plugins, env={"OPENAI_BASE_URL": server.url})
        brain, ann = Brain(server), await somebody(running)
        base = await make_base(ann, chunk_size=120, chunk_overlap=0)
        await ingest(running, ann, base, "handbook.md", HANDBOOK)
        brain.play(judge='{"draft": "wrong"}', answer=["I think 5 EUR [1].", DRAFT])
        answer = await ask(ann, await make_pipeline(ann, base), HOTEL, method="doubtful")
    assert (answer["answer"], brain.calls) == (DRAFT, ["answer", "judge", "answer"])
    assert answer["method_details"]["doubtful"] == {"opinion": "wrong"}


async def test_without_a_model_and_without_the_built_in_ones(tmp_path: Path) -> None:
    async with platforms(tmp_path) as start:
        running = await start("rag", "extractive_answers", HashEmbeddings(), Thorough())
        ann = await somebody(running)
        base = await make_base(ann, chunk_size=120, chunk_overlap=0)
        await ingest(running, ann, base, "handbook.md", HANDBOOK)
        pipeline = await make_pipeline(ann, base)
        answer = await ask(ann, pipeline, HOTEL, method="thorough")
        assert answer["method"] == "standard" and answer["sources"]
        assert "thorough: there is no model to ask" in answer["method_details"]["degraded"]
        known = (await ann.get("/v1/rag/capabilities")).json()["methods"]
        assert {"standard", "thorough"} <= set(known) and not {"self_rag", "auto"} & set(known)
        assert (await ask_raw(ann, pipeline, HOTEL, method="auto")).status == 422
