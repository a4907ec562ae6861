"""Prints when a 300-page PDF answers, and how well passages rank while half of them have no vectors: nDCG@10.

    python -m tests.benchmarks.early_search

A served platform with the default model: seconds from the upload until a search finds the first page and the
last one, until the document is completed, and how long searches for other things take in between, against
those afterwards. Then the ranking. Words, vectors and both legs with all vectors there; then half of the
passages, by chance, found by words alone, of which some (`word_hits.MOST_EMBEDDED`) are embedded for
the question. `unread` leaves that half out: what was found before documents were searched while they are
read. The last set are long passages (`passages`), of which only the best part is embedded.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median

import aiohttp
import numpy as np

from builtin_plugins.documents.api import Block, chunk
from builtin_plugins.embeddings.catalog import MODELS
from builtin_plugins.embeddings.engines.base import EmbeddingEngine
from builtin_plugins.embeddings.settings import EmbeddingsSettings
from builtin_plugins.rag.models import KnowledgeBase
from builtin_plugins.rag.questions.retrieval import merged
from builtin_plugins.rag.questions.word_hits import MOST_EMBEDDED, BaseHits, excerpts
from builtin_plugins.vectors.api import Hit, Judged, Ranking, StoredPoint, fuse
from builtin_plugins.vectors.dense import DenseIndex
from builtin_plugins.vectors.fusion import hybrid, weight_for
from builtin_plugins.vectors.text import TextIndex
from tests.benchmarks.evaluation_sets import SETS, EvaluationSet, Question, load, ndcg
from tests.benchmarks.parsing import PAGES, pdf
from tests.benchmarks.passages import documents
from tests.benchmarks.serving import account, platform
from tests.benchmarks.texts import article

_MODEL = MODELS[0]
_SEEDS = 5
_DEPTH = 50
_AFTERWARDS = 40


class KeptVectors:
    """Vectors of passages and their excerpts, each embedded once."""

    def __init__(self, texts: Sequence[str], vectors: np.ndarray) -> None:
        self._kept = dict(zip(texts, vectors, strict=True))

    def vectors(self, texts: Sequence[str], engine: EmbeddingEngine) -> np.ndarray:
        new = [text for text in dict.fromkeys(texts) if text not in self._kept]
        if new:
            made = engine.encode([_MODEL.prefixes["passage"] + text for text in new])
            self._kept.update(zip(new, made, strict=True))
        rows = [self._kept[text] for text in texts]
        return np.stack(rows) if rows else np.empty((0, engine.dimension), np.float32)


class Half:
    """Passages with vectors, and those that have none yet."""

    def __init__(
        self, given: EvaluationSet, vectors: np.ndarray, early: np.ndarray, kept: KeptVectors
    ) -> None:
        self.excerpts = kept
        labels = np.arange(len(given.passages))
        self.given, self.vectors = given, vectors
        self.near, self.worded, self.early = DenseIndex(vectors.shape[1]), TextIndex(), TextIndex()
        self.near.add(labels[~early], vectors[~early])
        self.worded.add(labels[~early], [given.passages[at] for at in labels[~early]])
        self.early.add(labels[early], [given.passages[at] for at in labels[early]])

    def embedded(self, question: str, vector: np.ndarray) -> Judged:
        legs = (partial(self.near.search, vector), partial(self.worded.search, question))
        weight = weight_for(question, _MODEL.meaning)
        return hybrid(*legs, _DEPTH, weight=weight, unrelated=_MODEL.unrelated)

    async def both(self, question: str, vector: np.ndarray, engine: EmbeddingEngine) -> Sequence[int]:
        base = KnowledgeBase(embedding_model=_MODEL.name)
        worded = fuse(Ranking.empty(), self.early.search(question, MOST_EMBEDDED), MOST_EMBEDDED, 0.0)
        texts = excerpts(question, self._hits(worded))
        cosines = self.excerpts.vectors(texts, engine) @ vector
        parts = [self._hits(self.embedded(question, vector)), self._hits(worded, cosines)]
        asked = _MODEL.embedded(vector.reshape(1, -1), engine.identity)
        rankings = [BaseHits(base, hits) for hits in parts]
        found = await merged(None, rankings, question, asked, 10, hybrid=True)  # type: ignore[arg-type]
        return [int(hit.point.id) for hit in found]

    def _hits(self, judged: Judged, cosines: np.ndarray | None = None) -> list[Hit]:
        assert judged.words is not None
        near = judged.cosines if cosines is None else cosines
        rows = zip(judged.labels, judged.scores, near, judged.words, strict=True)
        return [
            Hit(StoredPoint(str(label), "", 0, self.given.passages[label], {}), *map(float, scores))
            for label, *scores in rows
        ]


def docstrings() -> EvaluationSet:
    """Passages of some 800 characters; those of a function are what its summary asks for."""
    questions, texts = documents()
    passages, asked = list[str](), list[Question]()
    for question, text in zip(questions, texts, strict=True):
        pieces = [piece.text for piece in chunk([Block(text)], 1000, 100)]
        asked.append(Question(question, {len(passages) + at: 1 for at in range(len(pieces))}))
        passages += pieces
    return EvaluationSet("docstrings", passages, asked)


async def row(given: EvaluationSet, engine: EmbeddingEngine) -> str:
    vectors = engine.encode([_MODEL.prefixes["passage"] + text for text in given.passages])
    asked = engine.encode([_MODEL.prefixes["query"] + one.text for one in given.questions])
    kept = KeptVectors(given.passages, vectors)
    whole = Half(given, vectors, np.zeros(len(vectors), bool), kept)
    figures: dict[str, list[float]] = {one: [] for one in ("words", "vectors", "both", "half", "unread")}
    for question, vector in zip(given.questions, asked, strict=True):
        figures["words"].append(ndcg(whole.worded.search(question.text, 10).labels, question.grades))
        figures["vectors"].append(ndcg(whole.near.search(vector, 10).labels, question.grades))
        figures["both"].append(ndcg(whole.embedded(question.text, vector).labels, question.grades))
    for seed in range(_SEEDS):
        chosen = random.Random(seed).sample(range(len(vectors)), len(vectors) // 2)
        half = Half(given, vectors, np.isin(np.arange(len(vectors)), chosen), kept)
        for question, vector in zip(given.questions, asked, strict=True):
            figures["half"].append(ndcg(await half.both(question.text, vector, engine), question.grades))
            figures["unread"].append(ndcg(half.embedded(question.text, vector).labels, question.grades))
    return f"{given.name:12}{len(vectors):8}" + "".join(f"{np.mean(one):9.3f}" for one in figures.values())


async def long_pdf(folder: Path) -> None:
    """Upload it to a served platform, and search for its last page until it is completed."""
    last = "The walrus at Tromsø eats 25 kilos of mussels a day."
    async with platform(folder) as served:
        headers = {"Authorization": f"Bearer {await account(served)}"}
        async with aiohttp.ClientSession(served.url, headers=headers) as session:
            async with session.post("/v1/rag/knowledge-bases", json={"name": "bench"}) as answer:
                base = f"/v1/rag/knowledge-bases/{(await answer.json())['id']}"
            await _upload(session, base, "first.txt", b"A first text, which loads the engine.")
            await _search(session, base, last)
            started = time.perf_counter()
            document = await _upload(session, base, "long.pdf", pdf(PAGES, last))
            seconds: dict[str, float] = {}
            times: dict[str, list[float]] = {"processing": [], "completed": []}
            number = 0
            while len(times["completed"]) < _AFTERWARDS:
                question = _question(number) if "found" in seconds else last
                took, pages = await _search(session, base, question)
                number += 1
                async with session.get(f"{base}/documents/{document}") as answer:
                    status = (await answer.json())["status"]
                since = time.perf_counter() - started
                if question != last:
                    times[status].append(took)
                elif PAGES in pages[:1]:
                    seconds["found"] = since
                if any(pages):
                    seconds.setdefault("first", since)
                seconds.setdefault(status, since)
                await asyncio.sleep(0.05)
    found, read = seconds["found"], seconds["completed"]
    p50, after = (1000 * median(times[one]) for one in ("processing", "completed"))
    print(f"{PAGES} pages: the first found after {seconds['first']:.1f} s")
    print(f"the last found after {found:.1f} s, read after {read:.1f} s ({found / read:.2f})")
    print(f"a search while it is read {p50:.0f} ms, afterwards {after:.0f} ms (p50)")


def _question(number: int) -> str:
    """A sentence of one of the pages, each time another."""
    return article(number * 7 % PAGES, 20).split(". ")[number % 20]


async def _upload(session: aiohttp.ClientSession, base: str, name: str, data: bytes) -> str:
    form = aiohttp.FormData()
    form.add_field("file", data, filename=name)
    async with session.post(f"{base}/upload", data=form) as answer:
        return str((await answer.json())["document_id"])


async def _search(session: aiohttp.ClientSession, base: str, text: str) -> tuple[float, list[int]]:
    """The seconds that it took, and the pages that were found."""
    started = time.perf_counter()
    async with session.post(f"{base}/search", json={"question": text}) as answer:
        items = (await answer.json())["items"]
    return time.perf_counter() - started, [one["page"] for one in items]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(long_pdf(Path(folder)))
    print(f"{'set':12}{'passages':>8}{'words':>9}{'vectors':>9}{'both':>9}{'half':>9}{'unread':>9}")
    engine = _MODEL.load(EmbeddingsSettings())
    for given in (*map(load, SETS), docstrings()):
        print(asyncio.run(row(given, engine)), flush=True)


if __name__ == "__main__":
    main()
