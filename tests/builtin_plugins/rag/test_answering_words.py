"""What of a question's words passages have."""

from __future__ import annotations

import pytest

from builtin_plugins.rag.answering.matching import asked_words, quotable
from builtin_plugins.rag.answering.words import (
    Stems,
    content_forms,
    content_stems,
    forms,
    found_in,
    meant_by,
    named_terms,
    same_word,
    stem,
)
from builtin_plugins.rag.api import QuotablePassage
from builtin_plugins.rag.passages import Passage

REPORT = (
    "Northwind Traders reported revenue of $4.2 million for 2025. The board appointed Maria Lindqvist as "
    "chief executive. Multi-factor authentication is mandatory."
)


def matched(
    question: str, text: str = REPORT, source: str = "report.pdf", language: str | None = None
) -> QuotablePassage:
    given = Passage(text, source, 0.5, "c", "d", language=language)
    return quotable(asked_words(question, None), [given])[0]


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("What is the revenue of Northwind in 2025?", {"northwind", "2025"}),
        ("What is the revenue of Contoso in 2025?", {"2025"}),
        ("What is the revenue of Northwind in 2019?", {"northwind"}),
        ("Who must use MFA?", {"mfa"}),
        ("Who must use VPN?", set()),
    ],
)
def test_names_that_a_passage_has(question: str, names: set[str]) -> None:
    assert matched(question).names == names


def test_names_may_stand_in_the_source() -> None:
    question, bare = "How long is the warranty of the X350?", "The warranty lasts two years."
    assert not matched(question, bare, "manual.pdf").names
    assert matched(question, bare, "X350.pdf").names == {"x350"}


def test_words_of_a_passage_and_its_sentences() -> None:
    """A word of the document's name is one of each sentence."""
    found = matched("Which board appointed Maria, says the report?")
    assert len(found.words) == 4
    assert [len(one.words) for one in found.sentences] == [1, 4, 1]


def test_words_meet_through_their_forms() -> None:
    """Plural, past and suffixed forms are one word; different numbers and short look-alikes are not."""
    for one, other in (
        ("batteries", "battery"),
        ("refunded", "refund"),
        ("işlemleri", "işlemi"),
        ("Repairs", "repair"),
    ):
        assert same_word(stem(one), stem(other)), (one, other)
    for one, other in (("12345678", "12345679"), ("cat", "car"), ("contract", "contrast"), ("X200", "X2000")):
        assert not same_word(stem(one), stem(other)), (one, other)


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ("Arbeiter", "Bauarbeiter", True),
        ("Milbe", "Varroamilbe", True),
        ("Bauarbeiter", "Arbeiter", True),
        ("Semmering", "Semmeringbahn", True),
        ("Glühbrand", "Brand", True),
        ("port", "transport", False),
        ("20000", "120000", False),
        ("stand", "Strand", False),
    ],
)
def test_a_word_is_found_in_a_compound(one: str, other: str, found: bool) -> None:
    """In either direction, where neither the word nor the rest is so short that it says nothing."""
    assert found_in(stem(one), [stem(other)]) is found


@pytest.mark.parametrize(
    ("language", "question", "text"),
    [
        ("es", "¿Cuándo dejó de navegarse?", "La navegación cesó en 1959."),
        ("tr", "Göl ne kadar derin?", "Gölünün derinliği 40 metredir."),
        ("de", "Welche Züge?", "Man kam mit Zügen."),
    ],
)
def test_words_meet_by_the_roots_of_their_language(language: str, question: str, text: str) -> None:
    """Where a language inflects, its own stemmer tells; a language without one costs nothing."""
    told = [len(matched(question, text, language=one).words) for one in (None, language, "xx")]
    assert told[1] > told[0] == told[2]


def test_forms_are_of_all_languages_that_are_asked_about() -> None:
    assert {"navegacion", "naveg"} <= forms("navegación", ["es", "de"])
    assert content_forms("Die Leitung", "de") == {"leitung"}
    assert content_forms("", "de") == frozenset()


def test_names_of_a_question() -> None:
    """Capitals past the start, codes, acronyms and possessives are names; titles are not."""
    assert named_terms("What did Michael Collins do in 1969?") == {stem("Michael"), stem("Collins"), "1969"}
    assert named_terms("Northwind's revenue?") == {"northwind"}
    assert named_terms("What's the dose?") == set()
    assert named_terms("How Long Is The Annual Leave Here") == set()
    assert content_stems("What is the warranty?") == [stem("warranty")]


def test_stems_are_found_as_by_a_look_at_each() -> None:
    parts = [
        "",
        "a",
        "ab",
        "bau",
        "arbeit",
        "arbeiter",
        "brand",
        "glühbrand",
        "varroa",
        "milb",
        "1897",
        "гор",
    ]
    parts += ["города", "天文", "stein", "brück", "en", "s"]
    stems = [one + other for one in parts for other in parts if one + other]
    found = Stems(stems)
    for wanted in stems:
        assert found.meant_by(wanted) == frozenset(meant_by(wanted, stems))
