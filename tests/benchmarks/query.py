"""B7 and B9: a question at 100,000 chunks beyond embedding and index search, and how cost grows.

B7 looks into the process, so that the client shares its event loop: B21 measures what a client waits for.
Each question has a passage that answers it; the others have random vectors. B9 also has more knowledge bases
and documents, and pages at the end of their lists.

python -m tests.benchmarks.query
"""

from __future__ import annotations

import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import aiohttp
import numpy as np
import uvloop

from builtin_plugins.accounts.api import ACCOUNTS
from builtin_plugins.embeddings.catalog import E5_SMALL
from builtin_plugins.embeddings.engines.openvino import OpenVinoEngine
from builtin_plugins.inference import api as inference
from builtin_plugins.rag.models import Document, KnowledgeBase
from builtin_plugins.vectors.api import VECTORS, Point, SqlVectorStore
from kernel.auth.models import Account
from kernel.boot import open_platform
from kernel.gateway.app import gateway_app
from kernel.platform import Platform
from kernel.process.server import Listener, bind
from kernel.sdk import Unit, utc_now
from kernel.settings.loading import SettingsLoader
from kernel.testing import candidates_of, environment
from tests.benchmarks.table import Row, print_table
from tests.benchmarks.texts import article

CHUNKS = 100_000
PER_DOCUMENT = 500
QUESTIONS = 40
PLUGINS = ("embeddings", "models", "rag", "extractive_answers")


def served(folder: Path) -> dict[str, str]:
    """The settings of a platform that serves: no answer is held to its schema again, as tests have it,
    and none of a plugin that isn't there.
    """
    unwanted = {"PLATFORM_STRICT_ANSWERS": None, "PLATFORM_MANIFESTS_DIR": None}
    return environment(folder / "home", unwanted)


class Bench:
    """A platform in this process, with one knowledge base that is filled without embedding."""

    paragraphs = 1
    """Of each passage's text."""

    def __init__(self, platform: Platform, session: aiohttp.ClientSession, model: str) -> None:
        self.platform = platform
        self.session = session
        self.model = model
        self.vectors = np.empty((0, 384), np.float32)
        self.rows = 0

    async def prepare(self) -> None:
        """An account, a knowledge base, a pipeline, and the engine's identity."""
        await self.platform.resource(ACCOUNTS).register("bench", "bench@example.org", "a long password")
        _, token = await self.platform.resource(ACCOUNTS).sign_in("bench", "a long password")
        self.session.headers["Authorization"] = f"Bearer {token}"
        self.base = (
            await self.post("/v1/rag/knowledge-bases", {"name": "bench", "embedding_model": self.model})
        )["id"]
        body = {"name": "bench", "knowledge_base_ids": [self.base]}
        self.pipeline = (await self.post("/v1/rag/pipeline", body))["pipeline_id"]
        self.engine = (await self.embed(["warm"])).engine

    async def post(self, path: str, body: Mapping[str, object]) -> dict[str, str]:
        async with self.session.post(path, json=body) as answer:
            assert answer.status == 200, await answer.text()
            return dict(await answer.json())

    async def embed(self, texts: list[str], purpose: inference.Purpose = "query"):  # type: ignore[no-untyped-def]
        return await self.platform.hooks.ask(
            inference.embed_texts, self.platform, model=self.model, texts=texts, purpose=purpose
        )

    async def fill(self, upto: int) -> None:
        """Points with random vectors and made-up texts, in published documents."""
        chance = np.random.default_rng(upto)
        while len(self.vectors) < upto:
            count = min(PER_DOCUMENT, upto - len(self.vectors))
            made = chance.normal(size=(count, 384)).astype(np.float32)
            made /= np.linalg.norm(made, axis=1, keepdims=True)
            await self._document(made)
            self.vectors = np.concatenate([self.vectors, made])

    async def add_answers(self) -> None:
        """A document with the passages that `question` asks about, embedded."""
        texts = [_answer(number) for number in range(-1, QUESTIONS)]
        await self._document((await self.embed(texts, "passage")).vectors, texts)

    async def add_rows(self, upto: int) -> None:
        """Knowledge bases and documents without passages."""

        def write(unit: Unit) -> None:
            for _ in range(self.rows, upto):
                unit.session.add(self._row(str(uuid.uuid4()), 0))
                empty = KnowledgeBase(
                    id=str(uuid.uuid4()), name="empty", description="", embedding_model=self.model,
                    visibility="shared", chunk_size=1000, chunk_overlap=0, created_at=utc_now(),
                    publishing="owner",
                )  # fmt: skip
                unit.session.add(empty)

        await self.platform.database.write(write)
        self.rows = upto

    async def _document(self, vectors: Any, texts: Sequence[str] = ()) -> None:
        document, collection = str(uuid.uuid4()), f"rag:{self.base}"
        place = {"page": None, "char_start": 0, "char_end": 0}
        points = [
            Point(str(uuid.uuid4()), document, at, texts[at] if texts else self._text(at), vector, place)
            for at, vector in enumerate(vectors)
        ]
        vectors = self.platform.resource(VECTORS)

        def write(unit: Unit) -> None:
            unit.session.add(self._row(document, len(points)))
            vectors.ensure(unit, collection, 384, self.engine)
            vectors.stage(unit, collection, points)
            vectors.publish(unit, collection, document)

        await self.platform.database.write(write)

    def _text(self, at: int) -> str:
        return article(len(self.vectors) + at, self.paragraphs)

    def _row(self, document: str, chunks: int) -> Document:
        return Document(
            id=document,
            knowledge_base_id=self.base,
            filename=f"{document}.txt",
            content_type="text/plain",
            size_bytes=1,
            sha256=uuid.uuid4().hex * 2,
            status="completed",
            chunk_count=chunks,
            uploaded_at=utc_now(),
        )

    async def ask(self, number: int) -> bool:
        """Whether a question has an answer."""
        path = f"/v1/rag/pipeline/{self.pipeline}/query"
        return bool((await self.post(path, {"question": self.question(number)}))["sources"])

    def question(self, number: int) -> str:
        """About other things each time, so that no sentence was read for the question before."""
        words = _answer(number).split()
        return f"Which {words[5]} does the {words[1]} in {words[3]} {words[4][:-1]}, number {number}?"


def _answer(number: int) -> str:
    return article(1_000_000 + number, 1)


async def timed(call: Callable[[int], Awaitable[object]], count: int = QUESTIONS) -> float:
    seconds = []
    for number in range(count):
        started = time.perf_counter()
        await call(number)
        seconds.append(time.perf_counter() - started)
    return median(seconds) * 1000


class Spent:
    """When questions were embedded and indexes searched.

    What overlaps counts once: a question's sentences are embedded beside its subject.
    """

    EMBEDDING = ((OpenVinoEngine, "encode"),)
    INDEXES = ((SqlVectorStore, "rank"),)

    def __init__(self) -> None:
        self._embedding: list[tuple[float, float]] = []
        self._indexes: list[tuple[float, float]] = []

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Note the calls of engines and indexes that are made within."""
        with ExitStack() as stack:
            for spans, calls in ((self._embedding, self.EMBEDDING), (self._indexes, self.INDEXES)):
                for owner, name in calls:
                    stack.enter_context(patch.object(owner, name, _noted(getattr(owner, name), spans)))
            yield

    def take(self) -> tuple[float, float]:
        """Milliseconds since the last time: of embedding, of index search."""
        taken = _covered(self._embedding) * 1000, _covered(self._indexes) * 1000
        self._embedding.clear()
        self._indexes.clear()
        return taken


def _noted(call: Callable[..., Any], spans: list[tuple[float, float]]) -> Callable[..., Any]:
    def timed_call(*args: Any, **kwargs: Any) -> Any:
        started = time.perf_counter()
        try:
            return call(*args, **kwargs)
        finally:
            spans.append((started, time.perf_counter()))

    return timed_call


def _covered(spans: list[tuple[float, float]]) -> float:
    covered, reached = 0.0, 0.0
    for start, end in sorted(spans):
        covered += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return covered


async def query_rows(bench: Bench, spent: Spent) -> list[Row]:
    await bench.add_answers()
    await bench.ask(-1)
    spent.take()
    figures, answered = list[tuple[float, float, float, float]](), 0
    for number in range(QUESTIONS):
        started = time.perf_counter()
        answered += await bench.ask(number)
        whole = (time.perf_counter() - started) * 1000
        embedding, indexes = spent.take()
        figures.append((whole, embedding, indexes, whole - embedding - indexes))
    whole, embedding, indexes, rest = (median(column) for column in zip(*figures, strict=True))
    figure = (
        f"{rest:.1f} ms (whole {whole:.1f}, embedding {embedding:.1f}, indexes {indexes:.1f}; "
        f"{answered} of {QUESTIONS} answered)"
    )
    what = f"question at {len(bench.vectors):,} chunks, {bench.model}, beyond embedding and index"
    return [Row("B7", what, figure, "< 10 ms", rest < 10)]


async def growth_rows(bench: Bench) -> list[Row]:
    """B9: the same request with ten times the passages, documents, knowledge bases and accounts, twice."""
    figures = []
    for chunks, accounts in ((CHUNKS // 100, 100), (CHUNKS // 10, 1_000), (CHUNKS, 10_000)):
        await bench.fill(chunks)
        await _accounts(bench.platform, accounts)
        await bench.ask(-1)
        asked = await timed(bench.ask, 15)
        await bench.add_rows(accounts)
        bases, last = "/v1/rag/knowledge-bases", f"limit=10&offset={accounts - 20}"
        paths = (
            "/v1/permissions",
            f"{bases}?limit=10",
            f"{bases}?{last}",
            f"{bases}/{bench.base}/documents?{last}",
        )
        taken = [await timed(_getter(bench, path), 40) for path in paths]
        figures.append((*taken, asked))
    names = ("authenticated GET", "10 knowledge bases", "the last 10", "the last 10 documents", "question")
    return [_growth(name, [row[at] for row in figures]) for at, name in enumerate(names)]


def _growth(name: str, figures: list[float]) -> Row:
    curve = " → ".join(f"{value:.2f}" for value in figures)
    flat = figures[2] < figures[0] * 3 + 5
    return Row("B9", f"{name}, ms at 1 → 10 → 100 x rows of each kind", curve, "flat or logarithmic", flat)


def _getter(bench: Bench, path: str) -> Callable[[int], Awaitable[object]]:
    async def get(_: int) -> None:
        async with bench.session.get(path) as answer:
            assert answer.status == 200
            await answer.read()

    return get


async def _accounts(platform: Platform, upto: int) -> None:
    _, known = await platform.resource(ACCOUNTS).list(limit=1)

    def add(unit: Unit) -> None:
        for number in range(known, upto):
            name = f"user-{number}"
            email = f"{name}@example.org"
            unit.session.add(Account(username=name, username_key=name, email=email, email_key=email))

    await platform.database.write(add)


async def main() -> None:
    spent = Spent()
    with tempfile.TemporaryDirectory() as name, spent.watched():  # before an engine is loaded
        loader = SettingsLoader(served(Path(name)))
        async with open_platform(loader, role="api", candidates=candidates_of(*PLUGINS)) as platform:
            listener = Listener(gateway_app(platform), patience=10, grace=1)
            await listener.start(bind("127.0.0.1", 0))
            async with aiohttp.ClientSession(f"http://127.0.0.1:{listener.port}") as session:
                bench = Bench(platform, session, E5_SMALL.name)
                await bench.prepare()
                rows = [*await growth_rows(bench), *await query_rows(bench, spent)]
            await listener.stop()
    print_table(rows)


if __name__ == "__main__":
    uvloop.run(main())
