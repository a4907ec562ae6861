"""Entities by rules: what is found, under which key and label, in every script, whatever the text."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest

from builtin_plugins.graph_rag.extraction.mentions import LABELS
from builtin_plugins.graph_rag.extraction.rules import extract

FILM = (
    "Kiss and Tell is a 1945 American comedy film starring Shirley Temple as Corliss Archer. There, two "
    "girls cause Archer's parents concern. Production began in St. Louis in the U.S. See also the report."
)


def keys(text: str, language: str | None = None) -> list[str]:
    return [mention.key for mention in extract(text, language=language)]


def labels(text: str) -> dict[str, str]:
    return {mention.key: mention.label for mention in extract(text)}


def test_mentions_lie_where_they_say_and_do_not_overlap() -> None:
    found = extract(FILM)
    assert all(FILM[mention.start : mention.end] == mention.text for mention in found)
    assert all(one.end <= next_one.start for one, next_one in pairwise(found))


def test_names_are_runs_of_capitals_and_openers_are_not() -> None:
    assert keys(FILM) == [
        "kiss and tell",
        "1945",
        "american",
        "shirley temple",
        "corliss archer",
        "archer",
        "st. louis",
        "us",
    ]


@pytest.mark.parametrize(
    ("text", "key", "label"),
    [
        ("It opened on 12 March 1921 in rain.", "1921-03-12", "DATE"),
        ("It opened on March 12, 1921 in rain.", "1921-03-12", "DATE"),
        ("Er kam am 12. März 1921 an.", "1921-03-12", "DATE"),
        ("Seen on 1921-03-12.", "1921-03-12", "DATE"),
        ("建于1921年3月12日。", "1921-03-12", "DATE"),
        ("It was founded in 1921.", "1921", "DATE"),
        ("It cost $3.5 million then.", "$3.5million", "MONEY"),
        ("It cost 40 million euros then.", "40millioneuros", "MONEY"),
        ("About 12.5 % of them agreed.", "12.5%", "PERCENT"),
        ("A span of 1,200 metres.", "1200metres", "QUANTITY"),
        ("See error CK-381 again.", "ck-381", "NOUN_PHRASE"),
        ("See https://example.org/a?b=1.", "https://example.org/a?b=1", "NOUN_PHRASE"),
        ('She wrote "The Silent Sea" there.', "silent sea", "WORK_OF_ART"),
        ("Then Dr. Ada Lindqvist spoke.", "ada lindqvist", "PERSON"),
        ("Ada Lindqvist (born 1921) spoke.", "ada lindqvist", "PERSON"),
        ("He met J. R. R. Tolkien there.", "j r r tolkien", "NOUN_PHRASE"),
        ("He studied at the University of Oxford.", "university of oxford", "ORG"),
        ("They crossed the Danube River.", "danube river", "LOC"),
        ("They went home to France.", "france", "GPE"),
        ("NASA denied it.", "nasa", "NOUN_PHRASE"),
        ("The Beatles were a band.", "beatles", "NOUN_PHRASE"),
        ("It was Dorota Masłowska's.", "dorota maslowska", "NOUN_PHRASE"),
    ],
)
def test_rules(text: str, key: str, label: str) -> None:
    """Each rule finds its kind of name, under one key, with the label that it knows."""
    assert labels(text).get(key) == label


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("It is cold until April. 3 pipes froze on 31 March. 4 May 2026.", ["31 March", "4 May 2026"]),
        ("On 14 Sept. 2026 and Feb. 3, 2025.", ["14 Sept. 2026", "Feb. 3, 2025"]),
    ],
)
def test_a_full_stop_ends_a_date(text: str, dates: list[str]) -> None:
    assert [one.text for one in extract(text) if one.label == "DATE"] == dates


@pytest.mark.parametrize(
    "text", ["The parents were there.", "However, it rained on Monday.", "In May they left.", "12:30 or 5th"]
)
def test_what_names_nothing(text: str) -> None:
    """Openers, weekdays, months, times and ordinals are no entities."""
    assert keys(text) == []


def test_one_name_has_one_key_however_it_is_written() -> None:
    spellings = ("Zoë Müller's", "ZOË MÜLLER", "Zoe Muller", "Ｚｏｅ Muller")
    assert {keys(f"Then {name} came.")[0] for name in spellings} == {"zoe muller"}


def test_german_nouns_are_no_names() -> None:
    """In German a capital alone is not enough, unless the caller says that the text is not German."""
    text = (
        "Angela Merkel besuchte die Universität Leipzig und sprach mit der Verwaltung über eine neue Brücke. "
        "Siemens ist ein großes Unternehmen in München."
    )
    assert keys(text) == ["angela merkel", "universitat leipzig", "siemens", "munchen"]
    assert "verwaltung" in keys("Then Verwaltung came.", language="en")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "林远山是中国作家，出生于苏州市，毕业于南京大学。他写了《白河之夜》。",
            {"林远山", "苏州市", "南京大学", "白河之夜"},
        ),
        (
            "村上春樹は『ノルウェイの森』を書き、アメリカで暮らした。",
            {"村上春樹", "ノルウェイの森", "アメリカ"},
        ),
        ("세종대왕은 서울에서 훈민정음을 만들었다.", {"세종대왕", "서울", "훈민정음"}),
        ("كتب «ألف ليلة» عام 1969 في NASA", {"ألف ليلة", "1969", "nasa"}),
        ("เขาทำงานที่ NASA ในปี 1969", {"nasa", "1969"}),
    ],
)
def test_scripts_without_capitals(text: str, expected: set[str]) -> None:
    """Brackets, particles, Latin words and numbers stand for capitals where there are none."""
    assert expected <= set(keys(text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Word " * 20_000,
        "a" * 300_000,
        "1." * 100_000,
        "1,1 " * 50_000,
        "\x00\x01\ud800" * 50_000,
        "林远山" * 50_000,
        '"' * 200_000,
        "ab@" * 100_000,
        "A de de " * 30_000,
        "שלום «" * 50_000,
        "\n" * 200_000,
    ],
    ids=lambda text: repr(text[:8]),
)
def test_any_text_takes_linear_time(text: str) -> None:
    started = time.process_time()
    found = extract(text)
    assert time.process_time() - started < 5
    assert {mention.label for mention in found} <= LABELS
