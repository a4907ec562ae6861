"""Reranking: by a server with `/v1/rerank` or TEI's `/rerank`, or by the words of the passages."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from kernel.testing import Actor, Running, platforms
from tests.builtin_plugins.rag.rag_support import ask, ingest, make_base, make_pipeline, somebody
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.llama_server import llama_server
from tests.fakes.tiny_models import cross_encoder

QUESTION = "How is the pump of the station oiled?"
TEXT = "\n\n".join(f"# Part {n}\n\nPart {n} says how the pump of station {n} is oiled." for n in range(30))
KEY = "rerank-secret"
session = pytest.mark.asyncio(loop_scope="session")

Answer = Callable[[dict[str, Any]], Any]


def last_first(body: dict[str, Any]) -> Any:
    """Scores that turn the order round; Jina's shape."""
    count = len(body["documents"])
    return {"results": [{"index": at, "relevance_score": (at + 1) / count} for at in range(count)]}


@dataclass
class RerankServer:
    """What it was asked, and what it answers: JSON, a status, or bytes."""

    answer: Answer = last_first
    bodies: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.json())
        self.keys.append(request.headers.get("Authorization"))
        answer = self.answer(self.bodies[-1])
        if asyncio.iscoroutine(answer):
            answer = await answer
        if isinstance(answer, int):
            return web.Response(status=answer, text="gpu-7.internal is on fire")
        if isinstance(answer, bytes):
            return web.Response(body=answer, content_type="application/json")
        return web.json_response(answer)


@dataclass
class Stage:
    """A platform with a reranking server, and an account with a pipeline."""

    running: Running
    server: RerankServer
    ann: Actor
    pipeline: str

    async def ask(self, **fields: object) -> dict[str, Any]:
        return await ask(self.ann, self.pipeline, QUESTION, **{"rerank": True, "explain": True, **fields})


@asynccontextmanager
async def stage_with(
    folder: Path, seconds: float, *, route: str = "/v1/rerank", base: str = "/"
) -> AsyncIterator[Stage]:
    """A platform that waits so long for the server, and is given its address with `base`."""
    server = RerankServer()
    app = web.Application()
    app.add_routes([web.post(route, server.handle)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}{base}"
        async with platforms(folder) as start:
            env = {
                "PLATFORM_RAG_RERANK_URL": url,
                "PLATFORM_RAG_RERANK_MODEL": "bge",
                "PLATFORM_RAG_RERANK_API_KEY": KEY,
                "PLATFORM_RAG_RERANK_SECONDS": str(seconds),
            }
            running = await start("rag", "extractive_answers", HashEmbeddings(), env=env)
            ann = await somebody(running)
            parts = await make_base(ann, chunk_size=80, chunk_overlap=0)
            await ingest(running, ann, parts, "parts.md", TEXT)
            await ingest(running, ann, parts, "others.md", TEXT.replace("Part", "Other"))
            yield Stage(running, server, ann, await make_pipeline(ann, parts))
    finally:
        await runner.cleanup()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    """Waits longer than this machine is ever busy: only a broken answer makes the words decide."""
    async with stage_with(tmp_path_factory.mktemp("reranking"), 60) as made:
        yield made


@pytest.fixture
def stage(shared: Stage) -> Stage:
    shared.server.answer = last_first
    shared.server.bodies.clear()
    shared.server.keys.clear()
    return shared


@session
async def test_the_servers_order_counts(stage: Stage) -> None:
    """It sees four times as many passages; the best by its scores are the sources."""
    answer = await stage.ask(top_k=6)
    (body,) = stage.server.bodies
    assert (body["model"], body["query"], len(body["documents"])) == ("bge", QUESTION, 24)
    assert stage.server.keys == [f"Bearer {KEY}"]
    assert [source["text"] for source in answer["sources"][:5]] == body["documents"][:-6:-1]
    assert answer["method_details"]["reranker"] == "cross_encoder"
    scores = [source["score"] for source in answer["sources"]]
    reranked = [source["scores"]["rerank"] for source in answer["sources"]]
    assert (scores, reranked) == (sorted(scores, reverse=True), sorted(reranked, reverse=True))
    capabilities = (await stage.ann.get("/v1/rag/capabilities")).json()
    rerank = capabilities["enhancers"]["rerank"]
    assert rerank == {"available": True, "backend": "cross_encoder", "place": "server"}


@session
async def test_attachments_keep_their_share(stage: Stage) -> None:
    """Also if the server puts them last; what made room for them is ranked with the others."""

    def unlike_notes(body: dict[str, Any]) -> Any:
        order = [float("Note" not in text) for text in body["documents"]]
        return {"results": [{"index": at, "relevance_score": score} for at, score in enumerate(order)]}

    files = await make_base(stage.ann, chunk_size=80, chunk_overlap=0)
    note = await ingest(stage.running, stage.ann, files, "note.md", "# Note\n\nThe pump smells of fish.")
    plain = [source["chunk_id"] for source in (await stage.ask(top_k=5, rerank=False))["sources"]]
    stage.server.answer = unlike_notes
    answer = await stage.ask(top_k=5, attachments=[note["document_id"]])
    ids = [source["document_id"] for source in answer["sources"]]
    assert len(ids) == 5 and ids[-1] == note["document_id"]
    scores = [source["score"] for source in answer["sources"]]
    assert scores == sorted(scores, reverse=True)
    assert len(stage.server.bodies[-1]["documents"]) > 20
    assert set(plain[:4]) <= {source["chunk_id"] for source in answer["sources"]}


@session
async def test_logits(stage: Stage) -> None:
    """Scores beyond 0 to 1, as llama.cpp gives them, keep their order and come out within."""

    def logits(body: dict[str, Any]) -> Any:
        count = len(body["documents"])
        made = [{"index": at, "relevance_score": float(at - 6)} for at in range(count)]
        return {"model": "bge", "results": made[::-1]}

    stage.server.answer = logits
    answer = await stage.ask(top_k=3)
    assert [source["text"] for source in answer["sources"]] == stage.server.bodies[0]["documents"][:-4:-1]
    assert all(0 <= source["score"] <= 1 for source in answer["sources"])


@session
@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("question", [QUESTION, "Who won the chess olympiad of 1972?"])
async def test_the_decision_does_not_depend_on_top_k(stage: Stage, broken: bool, question: str) -> None:
    """More or fewer sources are shown, and more or fewer looked at; the answer stays the same."""

    def highest_number(body: dict[str, Any]) -> Any:
        numbers = [int(re.findall(r"\d+", text)[0]) / 100 for text in body["documents"]]
        return {"results": [{"index": at, "relevance_score": one} for at, one in enumerate(numbers)]}

    stage.server.answer = (lambda body: 500) if broken else highest_number
    given = [
        await ask(stage.ann, stage.pipeline, question, rerank=True, top_k=top_k) for top_k in (1, 3, 6, 20)
    ]
    assert len({one["answer"].split("[")[0] for one in given}) == 1
    assert len({bool(one["sources"]) for one in given}) == 1
    assert max(one["confidence"] for one in given) - min(one["confidence"] for one in given) < 0.001


BROKEN: dict[str, Answer] = {
    "status": lambda body: 500,
    "no json": lambda body: b"<html>",
    "deep": lambda body: b"[" * 100_000,
    "another shape": lambda body: {"scores": [1, 2]},
    "too few": lambda body: {"results": [{"index": 0, "relevance_score": 1.0}]},
    "twice": lambda body: {"results": [{"index": 0, "relevance_score": 1.0}] * len(body["documents"])},
    "beyond": lambda body: {"results": [{"index": 99, "relevance_score": 1.0}]},
    "negative": lambda body: {"results": [{"index": -1, "relevance_score": 1.0}]},
    "not a number": lambda body: json.dumps(last_first(body)).replace("1.0", "NaN").encode(),
    "huge": lambda body: b'{"results": "' + b"x" * (5 << 20) + b'"}',
}


@session
@pytest.mark.parametrize("name", BROKEN)
async def test_a_broken_server(stage: Stage, name: str) -> None:
    """The search's order stands then, and the answer says so, without the server's own words."""
    stage.server.answer = BROKEN[name]
    await search_decides(stage)


@session
async def test_a_server_that_never_answers(tmp_path: Path) -> None:
    async def never(_body: dict[str, Any]) -> Any:
        await asyncio.Event().wait()

    async with asyncio.timeout(60), stage_with(tmp_path, 0.3) as stage:
        stage.server.answer = never
        await search_decides(stage)


async def search_decides(stage: Stage) -> None:
    answer = await stage.ask(top_k=3)
    assert len(answer["sources"]) == 3 and "reranker" not in answer["method_details"]
    degraded = " ".join(answer["method_details"]["degraded"])
    assert "reranking server failed" in degraded and "gpu-7" not in degraded


@session
async def test_only_if_asked_for(stage: Stage) -> None:
    await stage.ask(rerank=False)
    body = {"question": QUESTION, "rerank": True, "metadata_filter": {"source": "nothing.md"}}
    found = await stage.ann.post(f"/v1/rag/pipeline/{stage.pipeline}/search", json=body)
    assert found.status == 200 and stage.server.bodies == []


@session
async def test_a_search_tells_the_score(stage: Stage) -> None:
    body = {"question": QUESTION, "rerank": True, "top_k": 2}
    found = (await stage.ann.post(f"/v1/rag/pipeline/{stage.pipeline}/search", json=body)).json()
    assert [item["scores"]["rerank"] for item in found["items"]] == [item["score"] for item in found["items"]]


@session
async def test_text_embeddings_inference(tmp_path: Path) -> None:
    """TEI has no `/v1/rerank`, but a `/rerank` with fields of its own."""
    async with stage_with(tmp_path, 60, route="/rerank") as stage:
        stage.server.answer = lambda body: [
            {"index": at, "score": 1 / (2 + len(body["texts"]) - at)} for at in range(len(body["texts"]))
        ]
        answer = await stage.ask(top_k=10)
        assert answer["method_details"]["reranker"] == "cross_encoder"
        assert [len(body["texts"]) for body in stage.server.bodies] == [32, 8]
        assert all(body["truncate"] for body in stage.server.bodies)
        assert stage.server.keys == [f"Bearer {KEY}"] * 2


@session
async def test_another_kind_of_server_at_the_same_address(tmp_path: Path) -> None:
    """What answered as TEI once and is another server now is asked as that, without a restart."""

    def tei(body: dict[str, Any]) -> Any:
        texts = body.get("texts")
        return 404 if texts is None else [{"index": at, "score": 0.5} for at in range(len(texts))]

    async with stage_with(tmp_path, 60, route="/{version:(v1/)?}rerank") as stage:
        stage.server.answer = tei
        assert (await stage.ask(top_k=3))["method_details"]["reranker"] == "cross_encoder"
        stage.server.answer = lambda body: last_first(body) if "documents" in body else 404
        await stage.ask(top_k=3)
        assert (await stage.ask(top_k=3))["method_details"]["reranker"] == "cross_encoder"


@session
async def test_an_address_with_its_version(tmp_path: Path) -> None:
    async with stage_with(tmp_path, 60, base="/v1") as stage:
        assert (await stage.ask(top_k=3))["method_details"]["reranker"] == "cross_encoder"


@session
async def test_its_health(stage: Stage) -> None:
    """A server that fails is seen in `/health`; one that works is left alone."""

    async def health() -> str:
        return str((await stage.running.anonymous.get("/health")).json()["checks"]["reranking"])

    await stage.ask()
    stage.server.bodies.clear()
    assert await health() == "healthy" and stage.server.bodies == []
    stage.server.answer = BROKEN["status"]
    await stage.ask()
    assert (await health()).startswith("unhealthy: ")
    stage.server.answer = last_first
    assert await health() == "healthy"


@session
async def test_a_wrong_address_is_seen_at_once(tmp_path: Path) -> None:
    async with stage_with(tmp_path, 60, route="/elsewhere") as stage:
        answer = (await stage.running.anonymous.get("/health")).json()
        assert answer["checks"]["reranking"].startswith("unhealthy") and answer["status"] == "degraded"


async def small_stage(folder: Path, **env: str) -> AsyncIterator[tuple[Actor, str]]:
    async with platforms(folder) as start:
        running = await start("rag", "extractive_answers", HashEmbeddings(), env=env)
        ann = await somebody(running)
        base = await make_base(ann, chunk_size=80, chunk_overlap=0)
        await ingest(running, ann, base, "parts.md", TEXT)
        yield ann, await make_pipeline(ann, base)


@pytest.mark.long
@session
async def test_llama_cpps_own_server(tmp_path: Path) -> None:
    """Its scores are logits of any sign; they come out within 0 to 1, in its order."""
    with llama_server("rank") as url:
        settings = {"PLATFORM_RAG_RERANK_URL": url, "PLATFORM_RAG_RERANK_SECONDS": "200"}
        async for ann, pipeline in small_stage(tmp_path, **settings):
            answer = await ask(ann, pipeline, QUESTION, rerank=True, explain=True, top_k=3)
    assert answer["method_details"]["reranker"] == "cross_encoder"
    scores = [source["scores"]["rerank"] for source in answer["sources"]]
    assert len(scores) == 3 and scores == sorted(scores, reverse=True) and 0 < scores[2] < 1


@pytest.mark.long
@session
async def test_a_cross_encoder_in_a_folder(tmp_path: Path) -> None:
    from sentence_transformers import CrossEncoder

    folder = cross_encoder(tmp_path / "cross")
    async for ann, pipeline in small_stage(tmp_path, PLATFORM_RAG_RERANK_FOLDER=str(folder)):
        body = {"question": QUESTION, "rerank": True, "top_k": 5}
        found = (await ann.post(f"/v1/rag/pipeline/{pipeline}/search", json=body)).json()["items"]
        capabilities = (await ann.get("/v1/rag/capabilities")).json()
    pairs = [(QUESTION, item["text"]) for item in found]
    expected = CrossEncoder(str(folder), device="cpu", local_files_only=True).predict(pairs)
    assert [item["scores"]["rerank"] for item in found] == pytest.approx(expected.tolist(), abs=1e-4)
    rerank = capabilities["enhancers"]["rerank"]
    assert (rerank["backend"], rerank["place"]) == ("cross_encoder", "folder")


@session
async def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere")
    async for ann, pipeline in small_stage(tmp_path, PLATFORM_RAG_RERANK_FOLDER=nowhere):
        answer = await ask(ann, pipeline, QUESTION, rerank=True, top_k=3)
        capabilities = (await ann.get("/v1/rag/capabilities")).json()
        health = (await ann.get("/health")).json()["checks"]["reranking"]
    assert "reranker" not in answer["method_details"]
    degraded = {note.partition(":")[0] for note in answer["method_details"]["degraded"]}
    assert degraded == {"generation", "rerank"}
    assert capabilities["enhancers"]["rerank"] == {"available": False, "backend": None, "place": None}
    assert health.startswith("unhealthy: ")
