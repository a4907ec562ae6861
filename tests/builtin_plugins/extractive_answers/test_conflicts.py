"""Documents that say the same, but for a number, a date, or a "not"."""

from __future__ import annotations

import pytest

from tests.builtin_plugins.extractive_answers.judging import judged, passages

HOTEL = "How much may a hotel cost per night?"


@pytest.mark.parametrize(
    ("question", "one", "other"),
    [
        (HOTEL, "A hotel may cost up to 185 euro per night.", "A hotel may cost up to 210 euro per night."),
        (
            "When does the new policy apply?",
            "The new travel policy applies from 1 March 2025.",
            "The new travel policy applies from 15 July 2026.",
        ),
        (
            "May dogs come to the office?",
            "Dogs may come to the office on Fridays.",
            "Dogs may not come to the office on Fridays.",
        ),
        (
            "Wie viele Urlaubstage haben Angestellte?",
            "Alle Angestellten haben im Jahr 28 Urlaubstage.",
            "Alle Angestellten haben im Jahr 30 Urlaubstage.",
        ),
    ],
)
def test_both_are_quoted(question: str, one: str, other: str) -> None:
    found = judged(
        question, passages(f"Welcome. {one} Please keep to it.", f"Our house rules. {other} Thank you.")
    )
    assert found.differ and {quote.text for quote in found.quotes} == {one, other}
    assert {quote.passage for quote in found.quotes} == {0, 1}


@pytest.mark.parametrize(
    ("question", "one", "other"),
    [
        # The same value, another thing, more than one difference, and too little in common.
        (HOTEL, "A hotel may cost up to 185 euro per night.", "A hotel may cost up to 185 euro per night!"),
        (HOTEL, "A hotel may cost up to 185 euro per night.", "A meal may cost up to 40 euro per day."),
        (
            "How long is the warranty of drill 7?",
            "The warranty of drill 7 lasts 3 years.",
            "The warranty of drill 8 lasts 4 years.",
        ),
        (
            "What is the price of the X200?",
            "The price of the X200 is 90 euro.",
            "The price of the X300 is 90 euro.",
        ),
        ("What is the total?", "Total 821", "Total 633"),
        (
            "What does the receipt say?",
            "Item: lamp; Price: 9; Store: Oslo",
            "Item: lamp; Price: 12; Store: Oslo",
        ),
    ],
)
def test_what_only_looks_alike_is_none(question: str, one: str, other: str) -> None:
    assert not judged(question, passages(one, other)).differ


def test_a_document_does_not_contradict_itself() -> None:
    """A policy has a limit for each city, and its history in an appendix."""
    text = "A hotel in Oslo may cost up to 185 euro per night. "
    text += text.replace("185", "210")
    assert not judged(HOTEL, passages(text)).differ
