"""The engines agree with the published library, whatever the texts, the batches and the threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from builtin_plugins.embeddings.engines.base import EngineError, Reference, Vectors
from builtin_plugins.embeddings.engines.minilm import REFERENCE_FILE, MiniLm
from builtin_plugins.embeddings.engines.openvino import OpenVinoEngine
from builtin_plugins.embeddings.engines.openvino_runtime import opset, runtime
from builtin_plugins.embeddings.engines.sentence_transformers import SentenceTransformersEngine
from builtin_plugins.embeddings.engines.verification import verify
from builtin_plugins.embeddings.weights import Weights

TEXTS = [
    "The tenant pays the rent on the third working day of each month.",
    "ERR_CONNECTION_RESET after 30 s, see ticket #48213",
    "Grüße aus Köln! ¿Dónde está la estación? 東京は日本の首都です。",
    "a",
    "",
    "\n\t  spaces   and\u00a0no-break\u2009spaces \x00 and a control character",
    "ids: " + " ".join(f"{number:06d}" for number in range(0, 90_000, 1_000)),
    "The quick brown fox jumps over the lazy dog. " * 80,
    "word " * 256,
    "emoji 🙂🙂🙂 and the flag 🇪🇺",
]
SHORT = [text for text in TEXTS if len(text) < 100]
MANY = [f"{text} {number}" for number in range(30) for text in SHORT] + TEXTS
"""A dozen batches, one of them with long texts, which take most of the time."""


def cosines(one: Vectors, other: Vectors) -> Vectors:
    return np.sum(one * other, axis=1)


@pytest.mark.long
def test_openvino_agrees_with_the_published_library(
    openvino_engine: OpenVinoEngine, reference_engine: SentenceTransformersEngine
) -> None:
    """For each text, also a truncated, an empty and a foreign one; bf16 costs less than a thousandth."""
    agreement = cosines(openvino_engine.encode(TEXTS), reference_engine.encode(TEXTS))
    assert agreement.min() > 0.999


@pytest.mark.long
def test_openvino_in_fp32_is_the_published_library(
    weights: Weights, reference_engine: SentenceTransformersEngine
) -> None:
    engine = OpenVinoEngine(MiniLm(weights), precision="fp32", threads=1)
    assert np.abs(engine.encode(TEXTS) - reference_engine.encode(TEXTS)).max() < 1e-5


def test_the_stored_reference_is_what_the_published_library_gives(
    reference_engine: SentenceTransformersEngine,
) -> None:
    assert verify(reference_engine, Reference.read(REFERENCE_FILE)) > 0.99999


@pytest.mark.long
def test_the_reference_engine_in_bf16_stays_close(
    weights: Weights, reference_engine: SentenceTransformersEngine
) -> None:
    engine = SentenceTransformersEngine(weights, precision="bf16")
    assert engine.identity != reference_engine.identity
    some = [*SHORT, TEXTS[8]]  # with a truncated one; all of them take seconds
    assert cosines(engine.encode(some), reference_engine.encode(some)).min() > 0.995


@pytest.mark.parametrize("name", ["openvino_engine", "reference_engine"])
def test_vectors_are_of_length_one(name: str, request: pytest.FixtureRequest) -> None:
    engine = request.getfixturevalue(name)
    vectors = engine.encode(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), engine.dimension)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-4)
    assert engine.encode([]).shape == (0, engine.dimension)


def test_a_text_has_the_same_vector_in_any_company(openvino_engine: OpenVinoEngine) -> None:
    together = openvino_engine.encode(MANY)
    picked = [*range(0, len(MANY), 17), len(MANY) - 2]
    alone = np.concatenate([openvino_engine.encode([MANY[row]]) for row in picked])
    assert cosines(together[picked], alone).min() > 0.9995


def test_batches_side_by_side_give_the_same_vectors(
    openvino_engine: OpenVinoEngine, weights: Weights
) -> None:
    """In whatever order they end, each row has its own; two callers at once, as in a worker."""
    engine = OpenVinoEngine(MiniLm(weights), threads=2, batches=2)
    expected = openvino_engine.encode(MANY)
    with ThreadPoolExecutor(2) as threads:
        for found in threads.map(engine.encode, [MANY, MANY]):
            assert cosines(found, expected).min() > 0.9995


def test_threads_share_an_engine(openvino_engine: OpenVinoEngine) -> None:
    sets = [[f"text {number} of caller {caller}" for number in range(40)] for caller in range(4)]
    expected = [openvino_engine.encode(texts) for texts in sets]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(openvino_engine.encode, sets))
    assert all(cosines(a, b).min() > 0.9995 for a, b in zip(found, expected, strict=True))


def test_other_threads_run_while_it_computes(openvino_engine: OpenVinoEngine) -> None:
    done, turns = threading.Event(), 0

    def encode() -> None:
        openvino_engine.encode(["word " * 250] * 24)
        done.set()

    worker = threading.Thread(target=encode)
    worker.start()
    while not done.wait(0.002):
        turns += 1
    worker.join()
    assert turns > 20


def test_identities_tell_engine_model_precision_and_weights(
    openvino_engine: OpenVinoEngine, reference_engine: SentenceTransformersEngine, weights: Weights
) -> None:
    assert reference_engine.identity == f"sentence-transformers/all-MiniLM-L6-v2/fp32/{weights.fingerprint}"
    assert openvino_engine.identity.startswith("openvino/all-MiniLM-L6-v2/")
    assert openvino_engine.identity.endswith(weights.fingerprint)


def test_an_engine_that_computes_wrongly_is_refused(openvino_engine: OpenVinoEngine) -> None:
    good = Reference.read(REFERENCE_FILE)
    with pytest.raises(EngineError):
        verify(openvino_engine, Reference(good.texts, np.roll(good.vectors, 1, axis=0)))


def test_a_graph_reads_weights_that_were_let_go_of(weights: Weights, tmp_path: Path) -> None:
    """Vectors over mapped weights are those over an engine's own, also in shapes that it meets later."""
    texts = ["A short question?", "Some more words than that. " * 8, "A whole page of them. " * 60]
    kept = OpenVinoEngine(MiniLm(weights, tmp_path), precision="fp32", threads=1)
    own = OpenVinoEngine(MiniLm(weights), precision="fp32", threads=1)
    for text in texts:
        assert np.allclose(kept.encode([text]), own.encode([text]), atol=1e-5)
    assert [path.suffix for path in tmp_path.rglob("*") if path.is_file()] == [".safetensors"]


def test_the_private_part_of_the_runtime_that_is_used() -> None:
    """Its limit of kernels is undocumented: a release without it refuses the name, as it does any other."""
    given = opset().parameter([1], np.float32, name="given")
    graph = runtime().Model([opset().result(given)], [given], "nothing")
    runtime().Core().compile_model(graph, "CPU", {"CPU_RUNTIME_CACHE_CAPACITY": 200})
    with pytest.raises(RuntimeError, match="CPU_NOTHING_OF_THE_KIND"):
        runtime().Core().compile_model(graph, "CPU", {"CPU_NOTHING_OF_THE_KIND": 200})
