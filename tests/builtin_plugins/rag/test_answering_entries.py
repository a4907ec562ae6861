"""Entries among others of their kind: questions with their answers, codes with what they mean."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from builtin_plugins.rag.answering.codes import speaks_of_another
from tests.builtin_plugins.rag.answering import answer, judged, passages

STOVE = (
    "# Questions about the Korva stove\n\n"
    "### Is the stove suitable for boats?\nNo.\n\n"
    "### Can I burn pine?\nNo. It must be birch or beech.\n\n"
    "### What does error E07 mean?\nThe flow sensor is blocked.\n\n"
    "### What does error E12 mean?\nThe flow sensor is too hot.\n"
)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Is the stove suitable for boats?", "Is the stove suitable for boats? No. [1]"),
        ("Can I burn pine?", "No. It must be birch or beech. [1]"),
        ("What does error E12 mean?", "The flow sensor is too hot. [1]"),
    ],
)
def test_a_question_of_the_document_has_its_own_answer(question: str, expected: str) -> None:
    """A bare "No." is one, with what was asked; it is not lost, and no other question's answer joins it."""
    assert answer(question, passages(STOVE)).text == expected


ROWS = "Article\tWeight\nTE-3107\t2.10 kg\nTE-3108\t2.75 kg\nTE-3109\t3.05 kg"


@pytest.mark.parametrize(
    ("text", "question", "expected"),
    [
        (STOVE, "What does error E12 mean?", "The flow sensor is too hot. [1]"),
        (STOVE, "What does error E07 mean?", "The flow sensor is blocked. [1]"),
        (ROWS, "What is the weight of TE-3109?", "Article: TE-3109; Weight: 3.05 kg. [1]"),
    ],
)
def test_what_is_told_of_another_code_is_left_out(text: str, question: str, expected: str) -> None:
    """However near it is: the same words with another code are as near as can be."""

    def by_kind(_question: str, sentences: Sequence[str]) -> list[float]:
        return [0.9 if "E07" in one or "E12" in one or "TE-3107" in one else 0.4 for one in sentences]

    assert answer(question, passages(text), by_kind).text == expected


PRICES = "The tube BG-4410 has a price of 3.85 euros. It is made of glass. Glass breaks easily."


@pytest.mark.parametrize(
    ("question", "another"),
    [
        ("What is the price of the tube BG-4410?", False),
        ("What is the price of the tube BG4410?", False),
        ("What is the price of the tube bg/4410 in order PO-7731?", False),
        ("What is the price of the tube in order PO-7731?", False),
        ("What is the price of the tube in 2026?", False),
        ("What is the price of the tube BG-9990?", True),
    ],
)
def test_another_code_of_its_kind_is_no_answer(question: str, another: bool) -> None:
    """What the codes beside it mean says nothing about one that is nowhere; a code of another kind may be
    beside the point.
    """
    given = passages(PRICES)
    made = judged(question, given)
    assert speaks_of_another(question, made.found[made.order[0]], given) is another
    assert not (another and made.supported)


def test_amounts_are_no_codes() -> None:
    """EUR500 names nothing: what is said of another amount may well be the answer."""
    given = passages("A hotel may cost up to EUR750 a night. In FY2025 it was less. Breakfast is included.")
    for question in ("May I claim EUR500 for a hotel?", "How much did a hotel cost in FY2024?"):
        made = judged(question, given)
        assert not speaks_of_another(question, made.found[made.order[0]], given)


INVOICES = "Invoice\tAmount\nRE-2025-0101\t120 EUR\nRE-2025-0102\t80 EUR\nRE-2025-0105\t310 EUR"


def test_codes_of_several_parts() -> None:
    """The year is part of the number: another invoice of that year answers nothing."""
    assert answer("What is the amount of RE-2025-0105?", passages(INVOICES)).text.count("310 EUR") == 1
    assert "80 EUR" not in answer("What is the amount of RE-2025-0105?", passages(INVOICES)).text
    assert not answer("What is the amount of RE-2025-0199?", passages(INVOICES)).supported
