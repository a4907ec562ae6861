"""What of a question's words passages have, and what kind of answer it asks for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builtin_plugins.rag.answering.coverage import Coverage
from builtin_plugins.rag.answering.expectations import Expected, expected, offers
from builtin_plugins.rag.answering.passages import Passage
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
from tests.builtin_plugins.rag.answering import judged

REPORT = (
    "Northwind Traders reported revenue of $4.2 million for 2025. The board appointed Maria Lindqvist as "
    "chief executive. Multi-factor authentication is mandatory."
)


def passage(text: str = REPORT, source: str = "report.pdf") -> Passage:
    return Passage(text, source, 0.5, "c", "d")


def unnamed(question: str, given: Passage) -> float:
    """The share of the question's names that a passage lacks."""
    return Coverage(question).unnamed(given)


def test_a_name_that_is_nowhere_is_missed() -> None:
    """Another company, another year."""
    assert unnamed("What is the revenue of Northwind in 2025?", passage()) == 0.0
    assert unnamed("What is the revenue of Contoso in 2025?", passage()) == 0.5
    assert unnamed("What is the revenue of Northwind in 2019?", passage()) == 0.5


def test_names_may_stand_in_the_source() -> None:
    """A file's name can hold what the passage lacks."""
    question = "How long is the warranty of the X350?"
    bare = passage("The warranty lasts two years.", "manual.pdf")
    assert unnamed(question, bare) == 1.0
    assert unnamed(question, passage(bare.text, "X350.pdf")) == 0.0


def test_an_acronym_is_found_spelled_out() -> None:
    """MFA is multi-factor authentication."""
    assert unnamed("Who must use MFA?", passage()) == 0.0
    assert unnamed("Who must use VPN?", passage()) == 1.0


def test_the_share_of_the_words() -> None:
    """Of the passage with its document's name."""
    assert Coverage("Which board appointed Maria?").of(passage()) == 1.0
    assert Coverage("Does the report tell of revenue or of lemons?").of(passage()) == pytest.approx(2 / 3)
    assert Coverage("???").of(passage()) == 0.0


@pytest.mark.parametrize("question", ["", "???", "the of and to", "what is it"])
def test_a_question_without_a_word_is_never_supported(question: str) -> None:
    """Function words and signs ask nothing, even of a passage said to be near."""
    given = judged(question, [passage()], lambda _question, sentences: [0.9] * len(sentences))
    assert not given.supported and not given.hopeful


def test_no_passages_support_nothing() -> None:
    """An empty knowledge base answers nothing."""
    given = judged("What is the revenue?", [])
    assert not given.supported and not given.hopeful


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("When was it opened?", Expected.TIME),
        ("What time does it leave?", Expected.TIME),
        ("How many people work there?", Expected.NUMBER),
        ("Kaç gün sürer?", Expected.NUMBER),
        ("เปิดกี่วัน", Expected.NUMBER),
        ("राम का जन्म किस वर्ष हुआ?", Expected.TIME),
        ("What is the price of the drill?", Expected.MONEY),
        ("Was kostet ein Ausweis?", Expected.MONEY),
        ("Who invented it?", Expected.NAME),
        ("Who should avoid it?", Expected.ANYTHING),
        ("Why is it green?", Expected.ANYTHING),
    ],
)
def test_kinds_of_question(question: str, kind: Expected) -> None:
    """What is asked for is read from the question's words."""
    assert expected(question) is kind


def test_kinds_of_answer() -> None:
    """Numbers, times, money and names are seen, and the question's own number is no answer."""
    assert offers("How many volts has the X200?", "It has 18 volts.")
    assert not offers("How many volts has the X200?", "The X200 has a strong battery.")
    assert offers("How long does it rise?", "Let it rise for two hours.")
    assert offers("What is the price?", "It costs 20 EUR.")
    assert not offers("What is the price?", "It weighs 20 kg.")
    assert offers("Who invented the telephone?", "The telephone was invented by Bell.")
    assert not offers("Who invented the telephone?", "The telephone is useful.")


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
    told = [Coverage(question).of(replace(passage(text), language=one)) for one in (None, language, "xx")]
    assert told[1] > told[0] == told[2]


def test_forms_are_of_all_languages_that_are_asked_about() -> None:
    """A question is looked for in passages of several languages."""
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
    """Inflected, compound, equal and foreign ones, of any length."""
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
