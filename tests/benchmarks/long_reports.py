"""Prints how often long annual reports give the page that answers a question, by words, by vectors, by both,
and by both with documents that the question names preferred.

`python -m tests.benchmarks.long_reports [folder ...]`. The invented reports of `filings`, and folders of PDFs
with `questions.jsonl`: lines of `{"question": …, "document": FILE, "pages": [NUMBER, …]}`. Of each leg: the
share of questions whose first hit is in the right document, and that have a page of the evidence among the
first five; the same within the right document. `PLATFORM_BENCH_VECTORS=FOLDER` keeps vectors between runs.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from builtin_plugins.documents.api import Block, chunk, subject_of
from builtin_plugins.documents.pdf import from_pdf
from builtin_plugins.embeddings.catalog import MODELS
from builtin_plugins.embeddings.engines.base import EmbeddingEngine, Vectors
from builtin_plugins.embeddings.settings import EmbeddingsSettings
from builtin_plugins.rag.questions.naming import CANDIDATES, prefer_named, with_both_years, with_plain_years
from builtin_plugins.rag.services.loading import context_of, place_of
from builtin_plugins.vectors.api import CONTEXT, Hit, StoredPoint, searched_text
from builtin_plugins.vectors.dense import DenseIndex
from builtin_plugins.vectors.fusion import Judged, Labels, hybrid, weight_for
from builtin_plugins.vectors.text import TextIndex
from tests.benchmarks.filings import FilingQuestion, filings, questions

DEPTH = 5
LEGS = ("words", "vectors", "both", "named")


class Reports(NamedTuple):
    """Documents by name, and questions with the pages that answer them."""

    name: str
    documents: Sequence[tuple[str, Sequence[Block]]]
    questions: Sequence[FilingQuestion]


class Placed(NamedTuple):
    """A passage as a store has it, and its pages."""

    point: StoredPoint
    pages: frozenset[int | None]

    @property
    def document(self) -> str:
        return self.point.group


def invented(companies: str) -> Reports:
    made = filings(companies)
    return Reports(companies, [(one.name, one.blocks) for one in made], [*questions(made, companies)])


def in_folder(folder: Path) -> Reports:
    files = sorted(folder.glob("*.pdf"))
    lines = (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    asked = [json.loads(line) for line in lines if line]
    return Reports(
        folder.name,
        [(file.name, [*from_pdf.parse(file)]) for file in files],
        [FilingQuestion(one["question"], one["document"], one["pages"]) for one in asked],
    )


def passages(name: str, blocks: Sequence[Block]) -> Iterator[Placed]:
    cut = [*chunk(blocks, 1500, 150)]
    subject = subject_of(name, (one.text for one in cut))
    for one in cut:
        payload = {**place_of(one), CONTEXT: context_of(subject, one.sections)}
        point = StoredPoint(f"{name} {one.index}", name, one.index, one.text, payload)
        yield Placed(point, frozenset([one.page, *(page for _, page in one.pages)]))


class Encoder:
    """Embeds texts, each once if a folder keeps the vectors."""

    def __init__(self, engine: EmbeddingEngine) -> None:
        self.engine = engine
        self._folder = os.environ.get("PLATFORM_BENCH_VECTORS")

    def encode(self, kind: str, texts: Sequence[str]) -> Vectors:
        prefixed = [MODELS[0].prefixes[kind] + text for text in texts]
        if self._folder is None:
            return self.engine.encode(prefixed)
        digest = hashlib.sha256("\0".join(prefixed).encode()).hexdigest()[:24]
        kept = Path(self._folder) / f"{digest}.npy"
        if not kept.exists():
            np.save(kept, self.engine.encode(prefixed))
        vectors: Vectors = np.load(kept)
        return vectors


def named_first(question: str, both: Judged, points: Sequence[StoredPoint]) -> Labels:
    """The labels of a hybrid search, those of documents that the question names first."""
    numbers = zip(both.labels.tolist(), both.scores.tolist(), both.cosines.tolist(), strict=True)
    hits = [Hit(points[label], score, cosine) for label, score, cosine in numbers]
    place = {hit.point.id: label for hit, label in zip(hits, both.labels.tolist(), strict=True)}
    return np.array([place[hit.point.id] for hit in prefer_named(hits, question)], np.int64)


Rank: TypeAlias = "Callable[[FilingQuestion, np.ndarray, Labels | None], Sequence[Labels]]"


def searcher(placed: Sequence[Placed], encoder: Encoder) -> Rank:
    """The first passages of each leg for a question, among some labels."""
    near, worded = DenseIndex(encoder.engine.dimension), TextIndex()
    labels = np.arange(len(placed))
    texts = [searched_text(one.point.text, one.point.payload) for one in placed]
    near.add(labels, encoder.encode("passage", texts))
    worded.add(labels, texts)
    model = MODELS[0]

    def rank(asked: FilingQuestion, vector: np.ndarray, among: Labels | None) -> Sequence[Labels]:
        dense, text = partial(near.search, vector), worded.bound_search(with_both_years(asked.text))
        weight = weight_for(asked.text, model.meaning)
        both = hybrid(dense, text, CANDIDATES, weight=weight, unrelated=model.unrelated, allowed=among)
        named = named_first(asked.text, both, [one.point for one in placed])
        legs = (text(DEPTH, among).labels, dense(DEPTH, among).labels, both.labels, named)
        return [one[:DEPTH] for one in legs]

    return rank


def figures(given: Reports, encoder: Encoder) -> Iterator[str]:
    placed = [one for name, blocks in given.documents for one in passages(name, blocks)]
    rank = searcher(placed, encoder)
    vectors = encoder.encode("query", [with_plain_years(one.text) for one in given.questions])
    rows = np.array([_judged(placed, rank, *one) for one in zip(given.questions, vectors, strict=True)])
    for at, leg in enumerate(LEGS):
        shares = "".join(f"{share:10.3f}" for share in rows[:, at].mean(axis=0))
        yield f"{given.name:14}{len(placed):8}{len(rows):6}{leg:>9}{shares}"


def _judged(
    placed: Sequence[Placed], rank: Rank, asked: FilingQuestion, vector: np.ndarray
) -> list[tuple[bool, bool, bool]]:
    own = np.array([at for at, one in enumerate(placed) if one.document == asked.document])
    wanted = set(asked.pages)

    def right(labels: Labels) -> bool:
        hits = [placed[at] for at in labels.tolist()]
        return any(one.document == asked.document and one.pages & wanted for one in hits)

    legs = zip(rank(asked, vector, None), rank(asked, vector, own), strict=True)
    return [
        (placed[int(found[0])].document == asked.document, right(found), right(within))
        for found, within in legs
    ]


def main(folders: Sequence[str]) -> None:
    columns = "".join(f"{name:>10}" for name in ("document", "page in 5", "within"))
    print(f"{'set':14}{'passages':>8}{'asked':>6}{'leg':>9}{columns}")
    encoder = Encoder(MODELS[0].load(EmbeddingsSettings()))
    for given in (
        invented("companies"),
        invented("unseen"),
        *(in_folder(Path(folder)) for folder in folders),
    ):
        for row in figures(given, encoder):
            print(row, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
