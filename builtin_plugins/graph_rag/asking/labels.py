"""What the labels of entities mean (OntoNotes 5.0, section 2.6)."""

from __future__ import annotations

from typing import Final

_MEANINGS: Final = {
    "PERSON": "People, real or fictional",
    "NORP": "Nationalities, religious or political groups",
    "FAC": "Buildings, airports, roads, bridges",
    "ORG": "Companies, agencies, institutions",
    "GPE": "Countries, cities, states",
    "LOC": "Mountains, waters, regions",
    "PRODUCT": "Things that are made",
    "EVENT": "Battles, storms, sports events",
    "WORK_OF_ART": "Titles of books, songs, articles",
    "LAW": "Documents made into law",
    "LANGUAGE": "Languages",
    "DATE": "Dates and periods",
    "TIME": "Times shorter than a day",
    "PERCENT": "Percentages",
    "MONEY": "Amounts of money",
    "QUANTITY": "Measurements",
    "ORDINAL": "First, second and so on",
    "CARDINAL": "Other numbers",
    "NOUN_PHRASE": "A name or phrase of no other kind",
}


def meaning(label: str) -> str:
    """A label in a few words; the label itself if it is a plugin's own."""
    return _MEANINGS.get(label, label)
