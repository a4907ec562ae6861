"""Vectors in files say what the same vectors in memory say, whatever was changed, saved and opened."""

from __future__ import annotations

import random
import resource
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from builtin_plugins.vectors.dense import DenseIndex
from builtin_plugins.vectors.dense_files import SegmentedDenseIndex

DIMENSION = 16
Vectors = npt.NDArray[np.float32]


def unit_vectors(count: int, seed: int) -> Vectors:
    vectors = np.random.default_rng(seed).normal(size=(count, DIMENSION)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def opened(folder: Path, before: SegmentedDenseIndex | None = None, **options: int) -> SegmentedDenseIndex:
    """An empty index in a new folder, or the index `before`, saved and opened."""
    folder.mkdir()
    if before is not None:
        before.link_to(folder)
    return SegmentedDenseIndex(DIMENSION, folder, before and before.parameters, **options)


def loaded(folder: Path, count: int, **options: int) -> SegmentedDenseIndex:
    index = opened(folder, **options)
    index.begin_loading()
    index.add(np.arange(count)[::-1], unit_vectors(count, 0)[::-1])
    index.end_loading()
    return index


@pytest.mark.parametrize("seed", range(4))
def test_files_say_what_memory_says(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    plain, index = DenseIndex(DIMENSION), loaded(tmp_path / "0", 300)
    plain.add(np.arange(300), unit_vectors(300, 0))

    def add(step: int) -> None:
        labels = chance.sample(range(400), chance.choice([1, 40]))
        for one in (plain, index):
            one.add(labels, unit_vectors(len(labels), step))

    def remove(_step: int) -> None:
        labels = chance.sample(range(400), chance.choice([1, 40]))
        for one in (plain, index):
            one.remove(labels)

    def reopen(step: int) -> None:
        nonlocal index
        index = opened(tmp_path / str(step), index)

    steps: list[Callable[[int], None]] = [add, remove, reopen]
    for step in range(1, 60):
        chance.choice(steps)(step)
        question = unit_vectors(1, -step % 1000)[0]
        among = chance.choice([None, chance.sample(range(500), 5), chance.sample(range(500), 300)])
        expected, ranking = plain.search(question, 20, among), index.search(question, 20, among)
        assert ranking.labels.tolist() == expected.labels.tolist()
        assert ranking.scores == pytest.approx(expected.scores, abs=1e-6)
        assert index.count == plain.count


@pytest.mark.parametrize("approximate", [False, True])
def test_a_filter_that_is_asked_again_leaves_what_is_there_now(tmp_path: Path, approximate: bool) -> None:
    index = loaded(tmp_path / "0", 3000)
    assert not approximate or index.build_approximate()
    among, question = np.arange(500), unit_vectors(1, 6)[0]
    assert len(index.search(question, 3000, among).labels) == 500
    index.remove([7])
    index.add([3000], unit_vectors(1, 7))
    assert set(index.search(question, 3000, among).labels.tolist()) == set(range(500)) - {7}
    among = np.arange(2500, 3001)  # another array, perhaps at the address of the first
    assert set(index.search(question, 3000, among).labels.tolist()) == set(range(2500, 3001))


def test_files_know_what_was_deleted_and_is_still_in_them(tmp_path: Path) -> None:
    index = loaded(tmp_path / "0", 100)
    index.add([500], unit_vectors(1, 1))
    index.remove([3, 500, 900])
    assert (index.deleted, opened(tmp_path / "1", index).deleted) == (1, 1)
    index.remove(np.arange(50))
    assert index.stale == 0.5


def test_many_segments_ask_for_a_renewal(tmp_path: Path) -> None:
    index = loaded(tmp_path / "0", 100)
    for step in range(1, 13):
        assert index.stale == 0.0
        index.add([1000 + step], unit_vectors(1, step))
        index = opened(tmp_path / str(step), index)
    assert index.stale == 1.0


def test_an_approximate_index_is_opened_as_such(tmp_path: Path) -> None:
    index = loaded(tmp_path / "0", 3000, exact_up_to=1000)
    index.remove(np.arange(500))
    index.add([9000], unit_vectors(1, 5))
    assert index.wants_approximate and index.build_approximate() and not index.build_approximate()
    assert len(list((tmp_path / "0").glob("*.faiss"))) == 1
    index.remove(np.arange(500, 600))
    again = opened(tmp_path / "1", index, exact_up_to=1000)
    assert again.approximate and again.count == 2401 and not again.wants_approximate
    assert again.search(unit_vectors(1, 5)[0], 1).labels.tolist() == [9000]
    labels = again.search(unit_vectors(1, 6)[0], 3000, np.arange(1000)).labels
    assert sorted(labels.tolist()) == list(range(600, 1000))
    assert not set(range(600)) & set(again.search(unit_vectors(1, 6)[0], 3000).labels.tolist())


def test_changes_and_savings_while_it_becomes_approximate_are_kept(tmp_path: Path) -> None:
    index = loaded(tmp_path / "0", 20_000, exact_up_to=500)
    index.add([40_000], unit_vectors(1, 3))
    builder = threading.Thread(target=index.build_approximate)
    builder.start()
    step = 0
    while builder.is_alive() and step < 500:
        index.add([50_000 + step], unit_vectors(1, 100 + step))
        index.remove([step])
        if step % 50 == 0:
            opened(tmp_path / f"s{step}", index)
        step += 1
    builder.join()
    assert step > 1, "nothing changed during the building"
    again = opened(tmp_path / "again", index)
    for one in (index, again):
        assert one.approximate and one.count == 20_001
        assert one.search(unit_vectors(1, 100)[0], 1).labels.tolist() == [50_000]
        labels = one.search(unit_vectors(1, 0)[0], 30_000, np.arange(60_000)).labels.tolist()
        assert len(labels) == len(set(labels)) == 20_001 and not set(range(step)) & set(labels)


def test_a_full_disk_is_an_oserror_and_leaves_nothing(tmp_path: Path) -> None:
    index = loaded(tmp_path / "0", 100)
    index.add(np.arange(500, 600), unit_vectors(100, 1))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError):
            opened(tmp_path / "1", index)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert len(list((tmp_path / "0").glob("*.faiss"))) == 1
    assert index.search(unit_vectors(100, 1)[7], 1).labels.tolist() == [507]
    assert opened(tmp_path / "2", index).count == 200


def test_the_files_are_private(tmp_path: Path) -> None:
    loaded(tmp_path / "0", 100)
    assert {file.stat().st_mode & 0o777 for file in (tmp_path / "0").iterdir()} == {0o600}


@pytest.mark.parametrize("suffix", ["faiss", "labels.npy"])
def test_files_that_do_not_fit_are_refused(tmp_path: Path, suffix: str) -> None:
    loaded(tmp_path / "0", 100)
    (tmp_path / "0" / f"000001.{suffix}").write_bytes(b"something else")
    with pytest.raises((OSError, ValueError)):
        SegmentedDenseIndex(DIMENSION, tmp_path / "0")


def test_a_filter_on_what_is_far_from_the_question_finds_the_nearest_of_it(tmp_path: Path) -> None:
    """The lists that are nearest to the question hold almost nothing that the filter leaves."""
    count, k = 60_000, 20
    vectors = unit_vectors(count, 0)
    index = loaded(tmp_path / "0", count, exact_up_to=1000)
    assert index.build_approximate()
    question = np.eye(1, DIMENSION, dtype=np.float32)[0]
    for limit in (0.0, -0.5):
        allowed = np.flatnonzero(vectors @ question < limit)
        found = index.search(question, k, allowed).labels
        assert len(np.intersect1d(found, allowed)) == k
        assert (vectors[found] @ question).min() > limit - 0.02, "as near as the filter allows"
