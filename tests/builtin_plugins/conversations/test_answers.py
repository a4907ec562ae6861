"""Answers cut by what they cite."""

from __future__ import annotations

import pytest

from builtin_plugins.conversations.answers import GAP, cut, join, without

ANSWER = "A hotel may cost 130 EUR [1]. Meals are 42 EUR [2][3]. All in all it adds up. See also this [1, 2]."


@pytest.mark.parametrize(
    "answer",
    [
        ANSWER,
        "",
        "No citation at all",
        "Ends after its stop. [1] Then another. [2]",
        "- one [1]\n- two [2]\n\n3.5 EUR e.g. here [3]",
    ],
)
def test_pieces_are_the_whole(answer: str) -> None:
    assert "".join(text or "" for text, _ in cut(answer)) == answer


@pytest.mark.parametrize(
    ("gone", "left"),
    [
        ([], ANSWER),
        ([1], f"{GAP} Meals are 42 EUR [2][3]. {GAP}"),
        ([2], f"A hotel may cost 130 EUR [1]. {GAP}"),
        ([1, 2, 3], GAP),
        ([-1], f"A hotel may cost 130 EUR [1]. Meals are 42 EUR [2][3]. {GAP} See also this [1, 2]."),
    ],
)
def test_what_cites_a_passage_goes(gone: list[int], left: str) -> None:
    assert join(without(cut(ANSWER), gone)) == left


def test_citations_behind_the_stop() -> None:
    pieces = cut("Ends after its stop. [1] Then another. [2]")
    assert [numbers for _, numbers in pieces] == [[1], [2]]


def test_what_is_gone_stays_gone() -> None:
    left = without(cut(ANSWER), [1])
    assert join(without(left, [])) == join(left)
