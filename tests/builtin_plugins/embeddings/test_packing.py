"""Texts side by side in rows: each whole, none of another's tokens, little padding."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builtin_plugins.embeddings.engines.minilm import MiniLm
from builtin_plugins.embeddings.engines.openvino import OpenVinoEngine
from builtin_plugins.embeddings.engines.packing import packed, padded_length
from builtin_plugins.embeddings.weights import find_weights

LENGTHS = st.lists(st.integers(1, 512), min_size=1, max_size=40)


def tokens_of(lengths: list[int]) -> list[list[int]]:
    ends = np.cumsum(lengths).tolist()
    return [list(range(end - length + 1, end + 1)) for end, length in zip(ends, lengths, strict=True)]


@given(lengths=LENGTHS)
def test_every_text_is_whole(lengths: list[int]) -> None:
    """Its tokens stand in order in one row under its number, and just these are added up."""
    tokens = tokens_of(lengths)
    ids, places, texts, order, starts = packed(tokens)
    for number, own in enumerate(tokens, 1):
        rows, columns = np.nonzero(texts == number)
        assert len(set(rows.tolist())) == 1
        assert ids[rows, columns].tolist() == own
        assert places[rows, columns].tolist() == list(range(len(own)))
    assert not ids[texts == 0].any()
    assert [part.tolist() for part in np.split(ids.reshape(-1)[order], starts[1:])] == tokens


@given(lengths=LENGTHS)
def test_never_more_tokens_than_with_a_row_for_each(lengths: list[int]) -> None:
    assert packed(tokens_of(lengths)).ids.size <= len(lengths) * padded_length(max(lengths))


@pytest.mark.parametrize(
    ("lengths", "most"),
    [
        ([13, 25, 42, 9, 14, 32, 12, 23], 176),
        ([20] * 8, 160),
        ([230, 225], 464),
        ([10, 500], 512),
        ([400, 30], 432),
    ],
)
def test_little_padding(lengths: list[int], most: int) -> None:
    """Sentences of an answer share rows; passages of like lengths have one each."""
    assert packed(tokens_of(lengths)).ids.size <= most


@pytest.mark.parametrize(("tokens", "padded"), [(1, 8), (8, 8), (9, 16), (255, 256), (512, 512)])
def test_a_runtime_sees_few_lengths(tokens: int, padded: int) -> None:
    assert padded_length(tokens) == padded
    assert packed([[1] * tokens]).ids.shape == (1, padded)


@pytest.fixture(scope="module")
def engine() -> OpenVinoEngine:
    """In fp32, where no rounding hides what a neighbour does."""
    return OpenVinoEngine(MiniLm(find_weights()), precision="fp32", threads=1)


def test_a_neighbour_changes_nothing(engine: OpenVinoEngine) -> None:
    """A text's vector is the same alone, beside others in its row, and beside quite different ones."""
    text = "The pump of the second basin leaks."
    alone = engine.encode([text])[0]
    neighbours = (
        ["It rains."],
        ["Chess!"] * 7,
        [f"Invoice {number} is overdue." * 3 for number in range(12)],
    )
    for others in neighbours:
        found = engine.encode([*others[:1], text, *others[1:]])[1]
        assert np.abs(found - alone).max() < 1e-6, others
