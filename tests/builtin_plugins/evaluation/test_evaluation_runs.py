"""Runs: what they measure, that they survive a death, what they compare, and what `auto` makes of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from builtin_plugins.evaluation.models import Result
from builtin_plugins.evaluation.plugin import EvaluationPlugin
from builtin_plugins.rag import api as rag
from kernel.sdk import Plugin, hookimpl
from kernel.testing import Running, Start, environment, platforms
from tests.builtin_plugins.evaluation.evaluation_support import (
    API,
    QUESTIONS,
    boot,
    call,
    make_set,
    measure,
    nordlys,
)
from tests.builtin_plugins.rag.rag_support import NOWHERE, ask, make_pipeline, path_of, problems, somebody
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.processes import running_process
from tests.fakes.statements import statements
from tests.fakes.waiting import eventually

SHALLOW, DEEP = {"top_k": 1}, {"top_k": 10}


class Backwards(Plugin):
    """A method that finds the worst passages first, and counts its questions."""

    name = "backwards"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.dies_at: int | None = None

    @hookimpl(optionalhook=True)
    def register_methods(self) -> list[rag.QueryMethod]:
        return [rag.QueryMethod("backwards", "The worst first.", self.find)]

    async def find(self, work: rag.QuestionWork) -> list[rag.Passage]:
        if len(self.asked) == self.dies_at:
            self.dies_at = None
            raise KeyboardInterrupt
        self.asked.append(work.question)
        return list(reversed(await work.search(rag.SearchPlan(work.question, top_k=20))))


async def test_measures(start_platform: Start) -> None:
    """On the public set: figures with intervals, a table, a plot; deeper searches find no less."""
    running = await boot(start_platform)
    ann, base = await nordlys(running)
    run = await measure(running, ann, await make_set(ann, base), SHALLOW, DEEP)
    assert (run["status"], run["done"], run["total"], run["error"]) == ("done", 48, 48, None)
    shallow, deep = (one["measures"] for one in run["summaries"])
    assert deep["ndcg@10"]["mean"] >= shallow["ndcg@10"]["mean"] > 0.3
    for measures in (shallow, deep):
        for found in measures.values():
            assert found["low"] <= found["mean"] <= found["high"]
        assert (measures["refused_right"]["questions"], measures["ndcg@10"]["questions"]) == (3, 21)
        assert measures["model_calls"]["mean"] == 0 and measures["citations_supported"]["mean"] > 0.9
    table = await ann.get(f"{API}/runs/{run['id']}/table.md")
    assert table.body.decode().count("\n") == 4 and "standard hybrid k10" in table.body.decode()
    plot = await ann.get(f"{API}/runs/{run['id']}/plot.svg")
    assert ElementTree.fromstring(plot.body).tag.endswith("svg")
    job = (await ann.get(f"/v1/jobs/{run['job_id']}")).json()
    assert (job["status"], job["progress"]["done"]) == ("done", 48)


async def test_known_figures(start_platform: Start) -> None:
    """Of two questions with known ranks the measures are those worked out by hand."""
    running = await boot(start_platform)
    ann, base = await nordlys(running)
    set_id = await make_set(
        ann,
        base,
        [
            {"question": "How much may a hotel in Oslo cost?", "documents": ["no such document.md"]},
            {"question": "What is the daily allowance for meals?", "answers": ["42 EUR"]},
        ],
    )
    run = await measure(running, ann, set_id)
    found = (await call(ann, "get", f"/runs/{run['id']}/results"))["items"]
    worst, best = (one["values"] for one in found)
    assert (worst["ndcg@10"], worst["recall@5"], worst["mrr"], worst["contains"]) == (0, 0, 0, None)
    assert (best["ndcg@10"], best["recall@5"], best["contains"], best["refused_wrong"]) == (1, 1, 1, 0)


async def test_goes_on_after_kill_9(tmp_path: Path) -> None:
    """A worker killed in the middle of a run: the next one asks the rest, and leaves what is stored."""
    async with platforms(tmp_path) as start:
        running = await start("rag_methods", "extractive_answers", "evaluation", HashEmbeddings())
        ann, base = await nordlys(running)
        set_id = await make_set(ann, base)
        body = {"set_id": set_id, "configurations": [SHALLOW]}
        made = await call(ann, "post", "/runs", 202, json=body)
        hanging = tmp_path / "hanging"
        own = {"HANGS_AT": "12", "HANGING": str(hanging), "PLUGINS": "rag extractive_answers evaluation"}
        env = environment(tmp_path, own)
        command = ("-m", "tests.builtin_plugins.rag.tree_worker")
        async with running_process(*command, env=env, log=tmp_path / "first.log") as worker:
            await eventually(hanging.exists, 60)
            await worker.kill()
        before = await running.platform.database.read(_timed)
        assert 0 < len(before) < 24
        async with running_process(*command, env={**env, "HANGS_AT": "0"}, log=tmp_path / "second.log"):

            async def done() -> bool:
                run = await call(ann, "get", f"/runs/{made['id']}")
                return bool(run["status"] == "done" and run["done"] == run["total"] == 24)

            await eventually(done, 60)
        after = await running.platform.database.read(_timed)
        assert before.items() <= after.items() and len(after) == 24


def _timed(session: Session) -> dict[int, float]:
    """Each question that was measured, with how long it took: asked again, it would take another time."""
    return {row.question_id: row.latency_ms for row in session.scalars(select(Result))}


def _results(session: Session) -> int:
    return session.scalar(select(func.count()).select_from(Result)) or 0


async def test_list_of_many(start_platform: Start) -> None:
    """A list asks the database as often for many runs as for one, and counts for each."""
    running = await boot(start_platform)
    ann, base = await nordlys(running)
    sent = []
    for name in ("Why?", "Who?"):
        one = {"question": name, "unanswerable": True}
        set_id = await make_set(ann, base, [one, {**one, "question": "When?"}])
        await measure(running, ann, set_id)
        await call(ann, "post", "/runs", 202, json={"set_id": set_id, "configurations": [SHALLOW, DEEP]})
        with statements() as seen:
            found = await call(ann, "get", "/runs")
        sent.append(len(seen))
        assert [(run["done"], run["total"]) for run in found["items"][:2]] == [(0, 4), (2, 2)]
    assert found["total"] == 4 and sent[0] == sent[1]


async def test_comparison(start_platform: Start) -> None:
    """A method that is worse is significantly so, and its questions stand side by side, the worst first."""
    running = await boot(start_platform, None, EvaluationPlugin, Backwards())
    ann, base = await nordlys(running)
    set_id, again = await make_set(ann, base), await make_set(ann, base)
    good = await measure(running, ann, set_id)
    bad = await measure(running, ann, again, {"method": "backwards"})
    query = {"with": good["id"]}
    found = await call(ann, "get", f"/runs/{bad['id']}/comparison", params=query)
    change = found["differences"]["quality"]
    assert change["high"] < 0 and change["p"] < 0.05
    falls = [one["before"]["quality"] - one["now"]["quality"] for one in found["worse"]]
    assert falls == sorted(falls, reverse=True) and falls[-1] > 0
    same = await call(ann, "get", f"/runs/{good['id']}/comparison", params=query)
    assert same["worse"] == [] and same["differences"]["quality"]["p"] == 1
    wrong = await ann.get(f"{API}/runs/{bad['id']}/comparison", params={**query, "configuration": 5})
    assert "query.configuration" in problems(wrong)


async def test_auto(start_platform: Start) -> None:
    """It takes the cheapest that is not significantly worse, says why, and yields to what a question says.

    Without a reranker, nothing is reranked.
    """
    running = await boot(start_platform, None, EvaluationPlugin, Backwards())
    ann, base = await nordlys(running)
    pipeline = await make_pipeline(ann, base)
    question = "What is the daily allowance for meals?"
    before = await ask(ann, pipeline, question, method="auto")
    assert "measured" not in before["method_details"]["decision"]
    ways: list[dict[str, Any]] = [{"method": "backwards"}, {"rerank": True, "top_k": 7}]
    lines = map(json.loads, QUESTIONS.read_text(encoding="utf-8").splitlines())
    answerable = [one for one in lines if not one.get("unanswerable")]
    run = await measure(running, ann, await make_set(ann, base, answerable), *ways)
    after = await ask(ann, pipeline, question, method="auto")
    decision = after["method_details"]["decision"]
    assert decision["measured"]["run_id"] == run["id"] and decision["measured"]["questions"] >= 10
    assert decision["measured"]["taken"] == "standard hybrid rerank k7"
    wanted: Mapping[str, Any] = {"method": "standard", "rerank": False, "top_k": 7, "hybrid": True}
    assert {name: decision["applied"][name] for name in wanted} == wanted
    said = await ask(ann, pipeline, question, method="auto", top_k=2)
    assert said["method_details"]["decision"]["applied"]["top_k"] == 2 and len(said["sources"]) <= 2


async def test_refused(start_platform: Start) -> None:
    """An unknown method is named with the list; what a stranger may not see is unknown."""
    running = await boot(start_platform)
    ann, base = await nordlys(running)
    empty = await make_set(ann, base, [{"question": "Why?", "unanswerable": True}])
    unknown = await ann.post(f"{API}/runs", json={"set_id": empty, "configurations": [{"method": "guess"}]})
    assert "corrective" in problems(unknown)["body.configurations.0.method"]
    twice = await ann.post(f"{API}/runs", json={"set_id": empty, "configurations": [{}, {}]})
    assert twice.status == 422
    bob = await somebody(running)
    assert (await bob.post(f"{API}/runs", json={"set_id": empty})).status == 404
    assert (await ann.get(f"{API}/runs/{NOWHERE}")).status == 404
    run = await measure(running, ann, empty)
    assert (await bob.get(f"{API}/runs/{run['id']}")).status == 404
    assert (await bob.get(f"{API}/runs")).json()["total"] == 0
    assert (await ann.delete(f"{API}/runs/{run['id']}")).status == 204
    assert await running.platform.database.read(_results) == 0


async def test_rights_of_the_moment(start_platform: Start) -> None:
    """A run whose knowledge base is deleted before it begins is gone, and its job ends well."""
    running = await boot(start_platform)
    ann, base = await nordlys(running)
    set_id = await make_set(ann, base)
    made = await call(ann, "post", "/runs", 202, json={"set_id": set_id})
    receipt = (await ann.delete(f"/v1/rag/knowledge-bases/{base}")).json()["receipt"]
    assert {"place": "evaluation_sets", "count": 1, "pending": False} in receipt["removed"]
    await running.run_jobs()
    assert (await ann.get(f"{API}/runs/{made['id']}")).status == 404
    assert await running.platform.database.read(_results) == 0


async def test_deleted_documents_leave_their_questions(start_platform: Start) -> None:
    running: Running = await boot(start_platform)
    ann, base = await nordlys(running)
    set_id = await make_set(ann, base, [{"question": "Why?", "unanswerable": True}])
    await call(ann, "post", f"/sets/{set_id}/generate", json={"limit": 200})
    run = await measure(running, ann, set_id)
    listed = (await ann.get(f"/v1/rag/knowledge-bases/{base}/documents")).json()["items"]
    for one in listed:
        assert (await ann.delete(path_of(base, one["document_id"]))).status == 200
    assert (await call(ann, "get", f"/sets/{set_id}"))["question_count"] == 1
    assert (await call(ann, "get", f"/runs/{run['id']}"))["done"] == 1
