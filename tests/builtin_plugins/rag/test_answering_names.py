"""Which names a question is about, by their form."""

from __future__ import annotations

import pytest

from builtin_plugins.rag.answering.subject_names import subject_names


@pytest.mark.parametrize(
    ("question", "language", "names"),
    [
        ("What was Tesla's revenue in 2022?", "en", ["Tesla"]),
        ("How many people did Pelham & Royce employ?", "en", ["Pelham & Royce"]),
        ('What does "Blue Horizon" mean?', "en", ["Blue Horizon"]),
        ("Who is Mr Karl Olsen?", "en", ["Mr Karl Olsen"]),
        ("How many days of leave are there in Norway, on a Monday in May?", "en", []),
        ("What does the Norwegian office of the CFO do?", "en", []),
        ("Revenue per employee?", "en", []),
        ("Dürfen Kinder Honig essen, und was kostet ein Liter Milch?", "de", []),
        ("Wie hoch war der Umsatz der Nordwind Logistik GmbH?", "de", ["Nordwind Logistik GmbH"]),
        ("Wer ist Doris Hallmann?", "de", ["Doris Hallmann"]),
        ("Was sagt Frau Hallmann zu „Saxonia“?", "de", ["Saxonia", "Frau Hallmann"]),
        ("¿Cuánto ganó Maersk en España en 2022?", "es", ["Maersk"]),
        ("Quel est le revenu d'Orange en France ?", "fr", ["Orange"]),
        ("Где родился Ломоносов?", "ru", ["Ломоносов"]),
        ("Ayasofya'nın kubbesi ne kadar geniş?", "tr", ["Ayasofya"]),
        ("东京铁塔有多高？", "zh", []),
    ],
)
def test_the_names_that_a_question_is_about(question: str, language: str, names: list[str]) -> None:
    assert [one.text for one in subject_names(question, language)] == names
