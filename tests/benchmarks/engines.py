"""Prints how fast each embedding engine is, each in its own process.

`python -m tests.benchmarks.engines [passages]`: passages of 120 words a second, their ratio to plain
sentence-transformers in fp32, one short question at p50 and p99, seconds to load, resident memory after
loading and at the end, and the mean cosine to the reference vectors. Needs an otherwise idle machine.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from dataclasses import asdict, dataclass

import numpy as np
import psutil

from builtin_plugins.embeddings.engines.base import Reference
from builtin_plugins.embeddings.engines.minilm import REFERENCE_FILE
from tests.benchmarks.evaluation_sets import SETS, load

ENGINES = ("reference fp32", "reference bf16", "openvino fp32", "openvino bf16")
PASSAGES = 200
WORDS = 120
QUESTIONS = 200


@dataclass(frozen=True)
class Figures:
    """Rates are passages a second, times milliseconds, memory megabytes."""

    rate: float
    question_p50: float
    question_p99: float
    load_seconds: float
    loaded_memory: float
    memory: float
    cosine: float


def passages(count: int) -> list[str]:
    """English passages of 90 to 150 words, 120 on average, put together from the evaluation sets."""
    chance = random.Random(7)
    sentences = [text for name in SETS for text in load(name).passages]
    return [_passage(sentences, chance) for _ in range(count)]


def _passage(sentences: list[str], chance: random.Random) -> str:
    words: list[str] = []
    length = chance.randint(WORDS - 30, WORDS + 30)
    while len(words) < length:
        words += chance.choice(sentences).split()
    return " ".join(words[:length])


def measure(name: str, count: int) -> Figures:
    started = time.perf_counter()
    engine, verify = _load(name)
    load_seconds, loaded_memory = time.perf_counter() - started, _resident()
    texts = passages(count)
    engine.encode(texts[:32])
    started = time.perf_counter()
    engine.encode(texts)
    rate = count / (time.perf_counter() - started)
    times = [
        _timed(engine, f"How do I replace the filter of machine {number}?") for number in range(QUESTIONS)
    ]
    p50, p99 = np.quantile(times, [0.5, 0.99]) * 1000
    return Figures(rate, p50, p99, load_seconds, loaded_memory, _resident(), verify(engine, _reference()))


def _reference() -> Reference:
    return Reference.read(REFERENCE_FILE)


def _load(name: str):  # type: ignore[no-untyped-def]
    """Imports inside: no engine pays for the libraries of another."""
    from builtin_plugins.embeddings.engines.verification import verify
    from builtin_plugins.embeddings.weights import find_weights

    kind, precision = name.split()
    if kind == "openvino":
        from builtin_plugins.embeddings.engines.minilm import MiniLm
        from builtin_plugins.embeddings.engines.openvino import OpenVinoEngine

        return OpenVinoEngine(MiniLm(find_weights()), precision=precision), verify
    from builtin_plugins.embeddings.engines.sentence_transformers import SentenceTransformersEngine

    return SentenceTransformersEngine(find_weights(), precision=precision), verify


def _timed(engine, text: str) -> float:  # type: ignore[no-untyped-def]
    started = time.perf_counter()
    engine.encode([text])
    return time.perf_counter() - started


def _resident() -> float:
    return psutil.Process().memory_info().rss / 1e6


def _in_a_process_of_its_own(name: str, count: int) -> Figures | None:
    command = [sys.executable, "-m", "tests.benchmarks.engines", str(count), name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{name:<16} cannot run here: {done.stderr.strip().splitlines()[-1]}")
        return None
    return Figures(**json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else PASSAGES
    if len(sys.argv) > 2:
        print(json.dumps({key: float(value) for key, value in asdict(measure(sys.argv[2], count)).items()}))
        return
    heads = f"{'rate/s':>8}{'ratio':>7}{'p50 ms':>8}{'p99 ms':>8}{'load s':>8}{'MB':>10}{'cosine':>10}"
    print(f"{'engine':<16}{heads}")
    base: float | None = None
    for name in ENGINES:
        figures = _in_a_process_of_its_own(name, count)
        if figures is None:
            continue
        base = base or figures.rate
        memory = f"{figures.loaded_memory:.0f}-{figures.memory:.0f}"
        print(
            f"{name:<16}{figures.rate:8.1f}{figures.rate / base:7.2f}{figures.question_p50:8.2f}"
            f"{figures.question_p99:8.2f}{figures.load_seconds:8.2f}{memory:>10}{figures.cosine:10.6f}"
        )


if __name__ == "__main__":
    main()
