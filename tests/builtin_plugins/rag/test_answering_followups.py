"""Follow-up questions without a model."""

from __future__ import annotations

import pytest

from builtin_plugins.rag.answering.followups import make_whole, needs_subject

OSLO = "How much may a hotel cost in Oslo?"


@pytest.mark.parametrize(
    ("question", "before", "whole"),
    [
        ("and in Bergen?", [OSLO], "How much may a hotel cost in Bergen?"),
        ("And in New York?", [OSLO, "and in Bergen?"], "How much may a hotel cost in New York?"),
        (
            "Und in Bergen?",
            ["Wie viel darf ein Hotel in Oslo kosten?"],
            "Wie viel darf ein Hotel in Bergen kosten?",
        ),
        ("And breakfast?", ["How much may a hotel cost per night?"], "breakfast (hotel cost per night)?"),
        (
            "Who pays for it?",
            ["What is the daily allowance for meals?"],
            "Who pays for it (daily allowance meals)?",
        ),
        ("the price?", ["What is the weight of the X200?"], "What is the price of the X200?"),
        ("в Бергене?", ["Сколько стоит отель в Осло?"], "Сколько стоит отель в Бергене?"),
        ("then?", [OSLO], "then (hotel cost Oslo)?"),
        ("Who pays for it?", ["Whose breakfast is free?"], "Who pays for it (breakfast free)?"),
    ],
)
def test_made_whole(question: str, before: list[str], whole: str) -> None:
    """What follows the same function word takes the other's place; else the subject is added."""
    assert make_whole(question, before) == whole


@pytest.mark.parametrize(
    "question", ["Who wrote the travel handbook for Norway?", "Which class do employees book on trains?"]
)
def test_stands_alone(question: str) -> None:
    assert not needs_subject(question)
    assert make_whole(question, [OSLO]) == question


@pytest.mark.parametrize("question", ["?", "…", "and", "  ", "it " * 500])
def test_anything(question: str) -> None:
    """Nothing breaks it, and nothing grows beyond the words of the question before."""
    assert len(make_whole(question, [OSLO])) <= len(question) + len(OSLO) + 4
    assert make_whole(question, []) == question
