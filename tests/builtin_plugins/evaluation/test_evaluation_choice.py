"""`auto` after a run: the cheapest configuration that is not significantly worse, in its own words."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_plugins.evaluation.plugin import EvaluationPlugin
from builtin_plugins.inference import api as inference
from kernel.testing import Start
from tests.builtin_plugins.evaluation.evaluation_support import make_set, measure, nordlys
from tests.builtin_plugins.rag.rag_support import ask, make_base, make_pipeline
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.saying_model import SayingModel

QUESTION = "What is the daily allowance for meals?"
DEAR, CHEAP = {"method": "hyde", "top_k": 10}, {"method": "standard", "top_k": 10}


class Agreeing(SayingModel):
    """A model that says the same of everything, and imagines nothing new."""

    name = "agreeing"

    def say(self, messages: Sequence[inference.ChatMessage]) -> str:
        """See `SayingModel`."""
        asked = messages[-1].content
        return "It is so [1]." if "Question:" in asked else asked


async def test_only_some_documents_are_measured(start_platform: Start) -> None:
    """By the filter of a configuration, which `auto` never takes; one that can't be ends the run with why."""
    running = await start_platform(
        "rag_methods", "extractive_answers", HashEmbeddings(), Agreeing(), EvaluationPlugin
    )
    ann, base = await nordlys(running)
    questions, none = await make_set(ann, base), {"type": "eq", "key": "filename", "value": "none.md"}
    run = await measure(running, ann, questions, {**CHEAP, "metadata_filter": none}, DEAR)
    nothing, everything = (one["measures"]["recall@5"]["mean"] for one in run["summaries"])
    assert (nothing, everything > 0.5) == (0, True)
    assert run["summaries"][0]["label"] == "standard hybrid filter k10"
    assert {one["best"] for one in run["choices"].values()} == {"hyde hybrid k10"}
    wrong = {**CHEAP, "metadata_filter": {"type": "eq", "key": "nothing", "value": 1}}
    failed = await measure(running, ann, questions, wrong)
    assert failed["status"] == "failed" and "nothing" in failed["error"]


async def test_the_cheapest_of_equals(start_platform: Start) -> None:
    """The dearer way, named first, finds the same: the cheaper is taken, and the decision has the figures.

    Over a second knowledge base, where nothing was measured together, the rules decide.
    """
    running = await start_platform(
        "rag_methods", "extractive_answers", HashEmbeddings(), Agreeing(), EvaluationPlugin
    )
    ann, base = await nordlys(running)
    run = await measure(running, ann, await make_set(ann, base), DEAR, CHEAP)
    dear, cheap = (one["measures"] for one in run["summaries"])
    assert dear["quality"] == cheap["quality"]
    assert (dear["model_calls"]["mean"], cheap["model_calls"]["mean"] < 2) == (2, True)
    pipeline = await make_pipeline(ann, base)
    details = (await ask(ann, pipeline, QUESTION, method="auto"))["method_details"]
    assert details["requested"] == "auto"
    measured = details["decision"]["measured"]
    assert (measured["run_id"], measured["taken"]) == (run["id"], "standard hybrid k10")
    assert measured["best"] == "hyde hybrid k10" and measured["p"] >= 0.05 and measured["questions"] >= 10
    assert measured["quality"] == measured["best_quality"]
    assert details["decision"]["applied"]["method"] == "standard"
    both = await make_pipeline(ann, base, await make_base(ann, embedding_model="all-minilm"))
    decision = (await ask(ann, both, QUESTION, method="auto"))["method_details"]["decision"]
    assert "measured" not in decision and decision["complexity"]
