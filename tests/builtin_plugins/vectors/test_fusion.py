"""One ranking out of two legs: what either knows counts, and a missing leg does no harm."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builtin_plugins.vectors.dense import DenseIndex
from builtin_plugins.vectors.fusion import (
    IDENTIFIER_WEIGHT,
    MEANING_WEIGHT,
    Labels,
    Ranking,
    fuse,
    hybrid,
    weight_for,
)
from builtin_plugins.vectors.text import TextIndex


def ranked(scores: dict[int, float], full: float = 1.0) -> Ranking:
    return Ranking(np.array([*scores], np.int64), np.array([*scores.values()], np.float32), full)


def test_a_text_that_both_legs_like_comes_first() -> None:
    found = fuse(ranked({1: 0.8, 2: 0.7}), ranked({3: 5.0, 2: 4.5}, full=5.0), 3, 0.5)
    assert found.labels.tolist()[0] == 2


@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
def test_nothing_in_both_legs_gives_nothing(weight: float) -> None:
    assert fuse(Ranking.empty(), Ranking.empty(), 5, weight).size == 0


@given(
    scores=st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=20, unique=True),
    weight=st.floats(0.05, 0.95),
    dense=st.booleans(),
)
def test_with_one_leg_empty_the_other_keeps_its_order(
    scores: list[float], weight: float, dense: bool
) -> None:
    ordered = sorted((score if dense else abs(score) + 0.01 for score in scores), reverse=True)
    leg = ranked(dict(enumerate(ordered)), full=0.5)
    found = fuse(leg, Ranking.empty(), 50, weight) if dense else fuse(Ranking.empty(), leg, 50, weight)
    given_score = dict(zip(leg.labels.tolist(), leg.scores.tolist(), strict=True))
    assert (np.diff([given_score[label] for label in found.labels.tolist()]) <= 1e-6).all()
    assert found.size == leg.size


def test_equal_scores_keep_a_stable_order() -> None:
    leg = ranked({9: 0.5, 3: 0.5, 7: 0.5})
    assert fuse(leg, leg, 3, 0.5).labels.tolist() == [3, 7, 9]


def test_a_weak_text_match_does_not_outrank_a_strong_meaning() -> None:
    """The best of a poor BM25 leg is still poor: it is measured against a full match, not against itself."""
    found = fuse(ranked({1: 0.7, 2: 0.5}), ranked({2: 0.6}, full=12.0), 2, 0.5)
    assert found.labels.tolist() == [1, 2]


def test_scores_never_exceed_one() -> None:
    assert fuse(ranked({1: 1.0}), ranked({1: 30.0}, full=12.0), 1, 0.4).scores[0] == pytest.approx(1.0)


def test_scores_are_never_below_zero() -> None:
    """What has less to do with the question than nothing counts 0, and is not far below what hardly has more:
    a text with its words comes first. Equal ones keep the order of their cosines.
    """
    near = ranked({1: 0.701, 2: 0.69, 3: 0.6, 4: 0.65})
    found = fuse(near, ranked({3: 10.0}, full=12.0), 4, 0.4, unrelated=0.7)
    assert found.labels.tolist() == [3, 1, 2, 4]
    assert found.scores.min() == 0.0


@pytest.mark.parametrize("weight", [-0.1, 1.1, float("nan")])
def test_a_weight_outside_its_range_is_refused(weight: float) -> None:
    with pytest.raises(ValueError, match="weight"):
        fuse(Ranking.empty(), Ranking.empty(), 1, weight)


@pytest.mark.parametrize(
    ("question", "weight"),
    [
        ("what does CK-381 mean", IDENTIFIER_WEIGHT),
        ("raise max_connections", IDENTIFIER_WEIGHT),
        ("ECONNRESET on upload", IDENTIFIER_WEIGHT),
        ("is CVE-2021-4034 mended", IDENTIFIER_WEIGHT),
        ("what changed in 2021.4?", IDENTIFIER_WEIGHT),
        ("What were sales in 2022, and in FY2021?", MEANING_WEIGHT),
        ("How do I keep ants out of the kitchen?", MEANING_WEIGHT),
        ("where do I park in Lisbon", MEANING_WEIGHT),
    ],
)
def test_a_quoted_identifier_shifts_the_weight_to_words(question: str, weight: float) -> None:
    """Capitals at the start of a word are no identifier, nor are years."""
    assert weight_for(question) == weight


def test_hybrid_scores_each_candidate_by_both_legs() -> None:
    asked: list[tuple[int, list[int] | None]] = []

    def dense(k: int, allowed: Labels | None) -> Ranking:
        asked.append((k, None if allowed is None else allowed.tolist()))
        return ranked({1: 0.9}) if allowed is None else ranked({2: 0.8})

    def text(k: int, allowed: Labels | None) -> Ranking:
        return ranked({2: 4.0}, full=5.0) if allowed is None else ranked({}, full=5.0)

    found = hybrid(dense, text, 2, weight=0.5)
    assert asked[1] == (1, [2])
    assert found.labels.tolist() == [2, 1]
    assert found.scores[0] == pytest.approx(0.5 * 0.8 / 0.9 + 0.5 * 0.8, abs=1e-4)


def test_hybrid_keeps_to_its_filter() -> None:
    vectors = np.eye(8, dtype=np.float32)
    dense, text = DenseIndex(8), TextIndex()
    dense.add(np.arange(8), vectors)
    text.add(np.arange(8), ["pump"] * 8)
    found = hybrid(
        lambda k, allowed: dense.search(vectors[0], k, allowed),
        lambda k, allowed: text.search("pump", k, allowed),
        8,
        weight=0.5,
        allowed=[2, 5],
    )
    assert sorted(found.labels.tolist()) == [2, 5]
