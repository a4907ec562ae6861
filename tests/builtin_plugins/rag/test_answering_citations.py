"""Citations of generated answers, whole and streamed; what their scores tell."""

from __future__ import annotations

import time

import pytest

from builtin_plugins.rag.answering.citation_support import count_citations, pages_cited
from builtin_plugins.rag.answering.citations import CitationFilter, check_citations, without_citations
from builtin_plugins.rag.passages import Passage
from builtin_plugins.rag.questions.reporting import with_confidence

CASES = [
    ("Paris [1].", "Paris [1].", (1,)),
    ("Both [1, 2] and [2;3].", "Both [1][2] and [2][3].", (1, 2, 3)),
    ("Range [1-3] or [2–3].", "Range [1][2][3] or [2][3].", (1, 2, 3)),
    ("Invented [7] here [9].", "Invented here.", ()),
    ("Half [2, 9].", "Half [2].", (2,)),
    ("Wide 【2】 brackets.", "Wide [2] brackets.", (2,)),
    ("Adjacent [1][2][8].", "Adjacent [1][2].", (1, 2)),
    ("Glued[3] word.", "Glued[3] word.", (3,)),
    ("Code a[0] and list[str] and [x].", "Code a[0] and list[str] and [x].", ()),
    ("Huge [1-9999] range.", "Huge [1][2][3] range.", (1, 2, 3)),
    ("Open [1", "Open [1", ()),
    ("Line\n[1] next", "Line\n[1] next", (1,)),
    ("ends with space [2] ", "ends with space [2] ", (2,)),
    ("[[1]] double", "[[1]] double", (1,)),
]


@pytest.mark.parametrize(("text", "shown", "cited"), CASES)
def test_a_whole_answer(text: str, shown: str, cited: tuple[int, ...]) -> None:
    """Citations of the three passages stay, in one spelling; others go with the space before them."""
    assert check_citations(text, 3) == (shown, cited)


@pytest.mark.parametrize(("text", "shown", "cited"), CASES)
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_a_streamed_answer_is_the_same(text: str, shown: str, cited: tuple[int, ...], size: int) -> None:
    through = CitationFilter(3)
    pieces = [through.feed(text[at : at + size]) for at in range(0, len(text), size)]
    assert "".join(pieces) + through.close() == shown
    assert through.cited == cited


def test_text_is_not_held_back_longer_than_a_citation() -> None:
    through = CitationFilter(3)
    assert through.feed("Hello wor") == "Hello wor"
    assert through.feed("ld [see") == "ld [see"
    assert through.feed(" [1") == ""
    assert through.feed("]") == " [1]"
    endless = "".join(through.feed(" 1,") for _ in range(100)) + through.feed("[" + "1," * 100)
    assert len(endless) > 200


def test_history_loses_its_citations() -> None:
    assert without_citations("It is 5 [1][2]. Yes [3].") == "It is 5. Yes."


def test_hostile_text_takes_no_time() -> None:
    for run in (" ", "[", "[1", "[1,", " [1, 2"):
        check_citations(run * 20_000, 3)


def test_an_answer_of_spaces_takes_no_time() -> None:
    passage = Passage("A dog costs 12 EUR.", "a.pdf", 0.5, "c", "d", 7)
    started = time.process_time()
    for run in (" ", "\n", "[1", "[1] "):
        count_citations(f"A dog costs 12 EUR{run * 4_000}[1].", [passage])
    assert time.process_time() - started < 2.0


@pytest.mark.parametrize("confidence", [0.05, 0.3, 0.5, 0.95])
def test_scores_tell_the_confidence(confidence: float) -> None:
    """Whether it is above or below what retrieval said: the order stays, the mean is the confidence."""
    found = [Passage("A cabin.", "cabins.md", score, str(score), "d") for score in (0.8, 0.5, 0.2)]
    moved = [item.score for item in with_confidence(found, confidence)]
    assert moved == sorted(moved, reverse=True) and all(0 <= score <= 1 for score in moved)
    assert len(set(moved)) == 3 and sum(moved) / 3 == pytest.approx(confidence, abs=1e-5)


PARTS = ("A room costs 90 EUR.", "A bike costs 15 EUR a day.", "A dog costs 12 EUR a night.")


@pytest.mark.parametrize(
    ("text", "pages"),
    [
        ("A dog costs 12 EUR [1].", {1: 9}),
        ("Yes: a bike costs 15 EUR a day [1], and a dog 12 EUR a night [1].", {1: 8}),
        ("A bike costs 15 EUR [2], a room 90 EUR [1].", {1: 7}),
        ("A boat costs 40 EUR [1].", {}),
        ("[1] Nothing is said. It is so [3].", {}),
    ],
)
def test_the_page_that_a_sentence_cites(text: str, pages: dict[int, int]) -> None:
    first = len(PARTS[0]) + 2
    starts = ((first, 8), (first + len(PARTS[1]) + 2, 9))
    several = Passage("\n\n".join(PARTS), "a.pdf", 0.5, "c", "d", 7, pages=starts)
    assert [part.strip() for _, part in several.by_page()] == list(PARTS)
    assert pages_cited(text, [several, Passage(PARTS[1], "a.pdf", 0.5, "e", "d", 8)]) == pages
