"""The FAISS index of one collection: exact, filtered before ranking, safe to change while searched."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import faiss
import numpy as np
import numpy.typing as npt
import pytest

from builtin_plugins.vectors.dense import DenseIndex

DIMENSION = 32

Vectors = npt.NDArray[np.float32]


def unit_vectors(count: int, seed: int = 0) -> Vectors:
    """Vectors of length 1 around a few centres, as those of texts are."""
    chance = np.random.default_rng(seed)
    centres = np.random.default_rng(99).normal(size=(12, DIMENSION))
    rows = centres[chance.integers(0, 12, count)] + 0.5 * chance.normal(size=(count, DIMENSION))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def nearest(vectors: Vectors, query: Vectors, k: int) -> list[int]:
    return np.argsort(-(vectors @ query))[:k].tolist()


def filled(count: int, **options: int) -> tuple[DenseIndex, Vectors]:
    vectors = unit_vectors(count)
    index = DenseIndex(DIMENSION, **options)
    index.add(np.arange(count), vectors)
    return index, vectors


def test_search_gives_the_nearest_with_their_cosines() -> None:
    index, vectors = filled(2_000)
    query = unit_vectors(1, seed=1)[0]
    found = index.search(query, 10)
    assert found.labels.tolist() == nearest(vectors, query, 10)
    assert found.scores == pytest.approx(vectors[found.labels] @ query, abs=1e-3)


def test_a_filter_works_before_the_ranking() -> None:
    index, vectors = filled(3_000)
    query = unit_vectors(1, seed=1)[0]
    allowed = np.argsort(vectors @ query)[:50]
    found = index.search(query, 10, allowed)
    assert found.labels.tolist() == [int(allowed[place]) for place in nearest(vectors[allowed], query, 10)]


@pytest.mark.parametrize("allowed", [[], [77_777], [-1]])
def test_a_filter_that_fits_nothing_finds_nothing(allowed: list[int]) -> None:
    """An empty filter means nobody is allowed, not everybody, and unknown labels are harmless."""
    index, vectors = filled(100)
    assert index.search(vectors[0], 5, allowed).size == 0


def test_an_empty_index_and_a_large_k_are_answered() -> None:
    assert DenseIndex(DIMENSION).search(unit_vectors(1)[0], 5).size == 0
    index, vectors = filled(3)
    assert sorted(index.search(vectors[0], 10).labels.tolist()) == [0, 1, 2]


@pytest.mark.parametrize(
    ("labels", "vectors", "message"),
    [
        ([1, 2], unit_vectors(1), "2 labels need vectors"),
        ([1], np.zeros((1, DIMENSION + 1)), "1 labels need vectors"),
        ([1], np.ones((1, 1)), "1 labels need vectors"),
        ([1, 1], unit_vectors(2), "twice"),
        ([-4], unit_vectors(1), "negative"),
        ([1.5], unit_vectors(1), "integers"),
        ([1], np.full((1, DIMENSION), np.nan), "finite"),
    ],
)
def test_vectors_that_do_not_fit_are_refused(labels: list[int], vectors: Vectors, message: str) -> None:
    index = DenseIndex(DIMENSION)
    with pytest.raises(ValueError, match=message):
        index.add(labels, vectors)
    assert index.count == 0


def test_a_query_of_another_dimension_is_refused() -> None:
    index, _ = filled(5)
    with pytest.raises(ValueError, match="must be 32 numbers"):
        index.search(np.zeros(384, np.float32), 3)


def test_a_grown_collection_asks_for_the_approximate_index() -> None:
    index, _ = filled(600, exact_up_to=500)
    assert index.wants_approximate
    assert index.build_approximate()
    assert index.approximate
    assert not index.wants_approximate
    assert not index.build_approximate()


def test_the_approximate_index_finds_nearly_all_and_all_under_a_filter() -> None:
    index, vectors = filled(5_000, exact_up_to=500)
    index.build_approximate()
    queries, allowed = unit_vectors(50, seed=2), np.arange(0, 5_000, 50)
    free = [set(index.search(q, 10).labels.tolist()) & set(nearest(vectors, q, 10)) for q in queries]
    held = [index.search(q, 10, allowed).labels.tolist() for q in queries]
    wanted = [{int(allowed[i]) for i in nearest(vectors[allowed], q, 10)} for q in queries]
    assert np.mean([len(found) for found in free]) >= 9.5
    assert all(len(found) == 10 for found in held)
    assert np.mean([len(set(a) & b) for a, b in zip(held, wanted, strict=True)]) >= 9.5


def test_the_approximate_index_removes_and_replaces() -> None:
    index, vectors = filled(1_000, exact_up_to=500)
    index.build_approximate()
    index.remove(np.arange(100))
    index.add([500], -vectors[[500]])
    assert index.count == 900
    assert index.search(-vectors[500], 1).labels.tolist() == [500]
    assert not set(range(100)) & set(index.search(vectors[0], 200).labels.tolist())


def test_changes_during_the_building_are_kept() -> None:
    index, vectors = filled(20_000, exact_up_to=500)
    builder = threading.Thread(target=index.build_approximate)
    builder.start()
    added, removed = 0, 0
    while builder.is_alive() and added < 2_000:
        index.add([50_000 + added], -vectors[[added]])
        index.remove([removed])
        added, removed = added + 1, removed + 1
    builder.join()
    assert index.approximate
    assert index.count == 20_000 + added - removed
    assert not set(range(removed)) & set(index.search(vectors[0], 500, np.arange(20_000)).labels.tolist())
    assert index.search(-vectors[0], 1, [50_000]).labels.tolist() == [50_000]


def test_searches_run_while_the_index_changes() -> None:
    index, vectors = filled(2_000)
    stop = threading.Event()

    def change() -> None:
        for round_ in range(50):
            index.add(np.arange(5_000, 5_100), unit_vectors(100, seed=round_))
            index.remove(np.arange(5_000, 5_100))
        stop.set()

    def search() -> set[int]:
        seen: set[int] = set()
        while not stop.is_set():
            seen |= set(index.search(vectors[0], 20).labels.tolist())
        return seen

    with ThreadPoolExecutor(4) as threads:
        searches = [threads.submit(search) for _ in range(3)]
        threads.submit(change).result()
        seen = set.union(*(each.result() for each in searches))
    assert seen <= set(range(2_000)) | set(range(5_000, 5_100))
    assert index.count == 2_000


def test_a_search_holds_faiss_to_one_thread_in_whatever_thread_it_runs() -> None:
    """OpenMP keeps its number per thread, so that setting it once at start would not reach an executor."""
    index, vectors = filled(10)

    def threads_after_a_search() -> int:
        index.search(vectors[0], 1)
        return int(faiss.omp_get_max_threads())

    with ThreadPoolExecutor(1) as executor:
        assert executor.submit(threads_after_a_search).result() == 1
