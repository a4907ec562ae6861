"""Prints retrieval by passage size: whole descriptions of functions, found by their first sentence.

`python -m tests.benchmarks.passages [size ...]`. The texts are the docstrings of installed libraries (SciPy,
scikit-learn, NumPy), some 500 to 6,000 characters long; the question is the summary line, which the text then
lacks. A document stands where its best passage stands, among the ten passages that a search answers.
"""

from __future__ import annotations

import importlib
import inspect
import random
import re
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from builtin_plugins.documents.blocks import Block
from builtin_plugins.documents.chunking import chunk
from builtin_plugins.embeddings.catalog import MODELS, LocalModel
from builtin_plugins.embeddings.engines.base import EmbeddingEngine
from builtin_plugins.embeddings.settings import EmbeddingsSettings
from builtin_plugins.vectors.dense import DenseIndex
from builtin_plugins.vectors.fusion import hybrid, weight_for
from builtin_plugins.vectors.text import TextIndex

MODULES = (
    "scipy.signal",
    "scipy.stats",
    "scipy.optimize",
    "scipy.linalg",
    "scipy.ndimage",
    "scipy.interpolate",
    "scipy.special",
    "scipy.spatial",
    "scipy.integrate",
    "scipy.cluster.hierarchy",
    "scipy.fft",
    "scipy.sparse",
    "numpy",
    "sklearn.metrics",
    "sklearn.preprocessing",
    "sklearn.linear_model",
    "sklearn.cluster",
    "sklearn.decomposition",
    "sklearn.ensemble",
    "sklearn.datasets",
    "sklearn.feature_extraction.text",
    "sklearn.model_selection",
)
SIZES = (512, 1000, 1500, 2000)
MOST, K = 150, 10
_SUMMARY = re.compile(r"\s*(.+?)\n\s*\n(.+)", re.DOTALL)


def documents() -> tuple[list[str], list[str]]:
    pairs = sorted(set(_pairs()))
    random.Random(5).shuffle(pairs)
    questions, texts = zip(*pairs[:MOST], strict=True)
    return list(questions), list(texts)


def _pairs() -> Iterator[tuple[str, str]]:
    for name in MODULES:
        module = importlib.import_module(name)
        members = vars(module)
        for member in (members.get(one) for one in getattr(module, "__all__", members)):
            found = _SUMMARY.match(inspect.getdoc(member) or "") if callable(member) else None
            if found is None:
                continue
            summary, text = " ".join(found[1].split()), found[2].partition("\nExamples\n")[0].strip()
            if (
                summary[-1] == "."
                and "=" not in summary
                and 30 < len(summary) < 150
                and 500 < len(text) < 6000
            ):
                yield summary, text


def ranks(found: Sequence[int], owners: Sequence[int], right: int) -> float:
    """nDCG with one right document: 1 / log2(1 + its place), 0 where it is missing."""
    places = list(dict.fromkeys(owners[label] for label in found))
    return float(1.0 / np.log2(2 + places.index(right))) if right in places else 0.0


def row(model: LocalModel, engine: EmbeddingEngine, size: int) -> str:
    questions, texts = documents()
    passages, owners = list[str](), list[int]()
    for owner, text in enumerate(texts):
        for piece in chunk([Block(text)], size, size // 8):
            passages.append(piece.text)
            owners.append(owner)
    labels = np.arange(len(passages))
    near, worded = DenseIndex(engine.dimension), TextIndex()
    started = time.perf_counter()
    near.add(labels, engine.encode([model.prefixes["passage"] + text for text in passages]))
    seconds = time.perf_counter() - started
    worded.add(labels, passages)
    vectors = engine.encode([model.prefixes["query"] + text for text in questions])
    figures = []
    for number, (question, vector) in enumerate(zip(questions, vectors, strict=True)):
        legs = partial(near.search, vector), partial(worded.search, question)
        both = hybrid(*legs, K, weight=weight_for(question, model.meaning), unrelated=model.unrelated)
        lists = (legs[0](K).labels, legs[1](K).labels, both.labels)
        figures.append([ranks(one.tolist(), owners, number) for one in lists])
    means = "".join(f"{figure:9.3f}" for figure in np.mean(figures, axis=0))
    return f"{model.name:24}{size:6}{len(passages):10}{means}{seconds:9.1f}"


def main() -> None:
    sizes = [int(one) for one in sys.argv[1:]] or SIZES
    print(f"{'model':24}{'size':>6}{'passages':>10}{'dense':>9}{'text':>9}{'hybrid':>9}{'embed s':>9}")
    for model in MODELS:
        engine = model.load(EmbeddingsSettings())
        for size in sizes:
            print(row(model, engine, size), flush=True)


if __name__ == "__main__":
    main()
