"""Whether passages support a question."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builtin_plugins.rag.answering.expectations import Expected, expected, offers
from builtin_plugins.rag.answering.passages import Passage
from builtin_plugins.rag.answering.support import Scored, assess
from builtin_plugins.rag.answering.words import content_stems, named_terms, same_word, stem

LABELLED = Path(__file__).parents[2] / "benchmarks" / "data" / "support.json"
REPORT = (
    "Northwind Traders reported revenue of $4.2 million for 2025. The board appointed Maria Lindqvist as "
    "chief executive. Multi-factor authentication is mandatory."
)


def passage(text: str = REPORT, source: str = "report.pdf") -> Passage:
    return Passage(text, source, 0.5, "c", "d")


def test_meaning_and_words_together_support() -> None:
    """A near sentence with the question's words is support, by sentence, by passage and by words alone."""
    question = "What revenue did Northwind Traders report for 2025?"
    sentence = Scored(REPORT.split(". ")[0], 0.8)
    assert assess(question, [passage()], sentences=[sentence]).supported
    assert assess(question, [passage()], cosines=[0.7]).supported
    assert assess(question, [passage()]).supported


@pytest.mark.parametrize("cosine", [0.02, 0.1])
def test_a_far_passage_is_no_support(cosine: float) -> None:
    """Off-topic cosines are refused whatever one shared word says."""
    assert not assess("How do I report a stolen car?", [passage()], cosines=[cosine]).supported


def test_a_name_that_is_nowhere_speaks_against() -> None:
    """The same question about another company or year is less supported than about the right one."""
    right = assess("What is the revenue of Northwind in 2025?", [passage()], cosines=[0.5])
    company = assess("What is the revenue of Contoso in 2025?", [passage()], cosines=[0.5])
    year = assess("What is the revenue of Northwind in 2019?", [passage()], cosines=[0.5])
    assert company.evidence.missing_name
    assert year.evidence.missing_name
    assert not right.evidence.missing_name
    assert max(company.score, year.score) < right.score - 0.2


def test_names_may_stand_in_the_source_or_in_another_passage() -> None:
    """A file's name, and passages together, can hold the names that one passage lacks."""
    question = "How long is the warranty of the X350?"
    bare = passage("The warranty lasts two years.", "manual.pdf")
    assert assess(question, [bare]).evidence.missing_name
    assert not assess(question, [passage(bare.text, "X350.pdf")]).evidence.missing_name
    assert not assess(question, [bare, passage("The X350 is red.")]).evidence.missing_name


def test_an_acronym_is_found_spelled_out() -> None:
    """MFA is multi-factor authentication."""
    assert not assess("Who must use MFA?", [passage()]).evidence.missing_name
    assert assess("Who must use VPN?", [passage()]).evidence.missing_name


@pytest.mark.parametrize("question", ["", "???", "the of and to", "what is it"])
def test_a_question_without_a_word_is_never_supported(question: str) -> None:
    """Function words and signs ask nothing, even of a passage said to be near."""
    assert not assess(question, [passage()], cosines=[0.9]).supported


def test_no_passages_support_nothing() -> None:
    """An empty knowledge base answers nothing."""
    assert not assess("What is the revenue?", []).supported


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("When was it opened?", Expected.TIME),
        ("What time does it leave?", Expected.TIME),
        ("How many people work there?", Expected.NUMBER),
        ("Kaç gün sürer?", Expected.NUMBER),
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


def test_names_of_a_question() -> None:
    """Capitals past the start, codes, acronyms and possessives are names; titles are not."""
    assert named_terms("What did Michael Collins do in 1969?") == {stem("Michael"), stem("Collins"), "1969"}
    assert named_terms("Northwind's revenue?") == {"northwind"}
    assert named_terms("What's the dose?") == set()
    assert named_terms("How Long Is The Annual Leave Here") == set()
    assert content_stems("What is the warranty?") == [stem("warranty")]


def test_words_alone_keep_their_calibration() -> None:
    """On the labelled questions, most that are answered pass and none about something else does."""
    data = json.loads(LABELLED.read_text(encoding="utf-8"))
    passed: dict[str, list[bool]] = {}
    for item in data["questions"]:
        found = [passage(data["passages"][key], f"{key}.txt") for key in item["passages"]]
        kind = "answered" if item["answered"] else item["kind"]
        passed.setdefault(kind, []).append(assess(item["question"], found).supported)
    assert sum(passed["answered"]) >= 0.85 * len(passed["answered"])
    assert not any(passed["off topic"] + passed["nonsense"] + passed["other language"])
    assert sum(passed["same domain"]) <= 0.5 * len(passed["same domain"])
