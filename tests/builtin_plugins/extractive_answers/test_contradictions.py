"""Documents that say the same, but for a number, a date, or a "not"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from builtin_plugins.rag.api import Support
from tests.builtin_plugins.extractive_answers.judging import judged, passages

HOTEL = "How much may a hotel cost per night?"
LIMITS = ("A hotel may cost up to 185 euro per night.", "A hotel may cost up to 210 euro per night.")
VERSIONS = ("travel_policy_2025.pdf", "Travel policy 2026 final.docx")


def answered(question: str, *texts: str, names: Sequence[str] = VERSIONS) -> Support:
    """What is made of passages of documents with these names."""
    given = zip(passages(*texts), names, strict=True)
    return judged(question, [replace(one, source=name) for one, name in given])


@pytest.mark.parametrize(
    ("question", "one", "other"),
    [
        (HOTEL, *LIMITS),
        (
            "How many days of remote work are allowed?",
            "Employees may work remotely up to two days per week.",
            "Employees may work remotely up to three days per week.",
        ),
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
    texts = (f"Welcome. {one} Please keep to it.", f"Our house rules. {other} Thank you.")
    found = answered(question, *texts)
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
    assert not answered(question, one, other).differ


@pytest.mark.parametrize(
    "names",
    [("rules-norway.md", "rules-poland.md"), ("V220 manual.pdf", "V230 manual.pdf"), ("1.txt", "2.txt")],
)
def test_documents_of_other_names_may_be_about_other_things(names: Sequence[str]) -> None:
    assert not answered(HOTEL, *LIMITS, names=names).differ


def test_a_document_does_not_contradict_itself() -> None:
    """A policy has a limit for each city, and its history in an appendix."""
    assert not judged(HOTEL, passages(" ".join(LIMITS))).differ
