"""What a document is about: names and the year, of its file's name and its first page."""

from __future__ import annotations

import pytest

from builtin_plugins.documents.api import subject_of

REPORT = [
    "ANNUAL REPORT\nFor the fiscal year ended December 31, 2022\nPELHAM AEROSPACE INC.\nThe Company, Seattle",
    "Pelham Aerospace sold 40 aircraft in 2022, and 38 in 2021. The company employs 900 people.",
    "In 2022 our Aerospace business grew. Every company in the industry did, Pelham says.",
    "Net sales rose. The Company paid no dividend.",
]


LATER = ["The Company sold 1.3 million cars. Sales rose.", "Sales per car fell at the Company."]


@pytest.mark.parametrize(
    ("first", "name"),
    [
        ("FORM 10-K\n\nTesla, Inc.\n\nAnnual report", "Tesla"),
        ("FORM 10-K\n\nPELHAM & ROYCE STORES INC.\n\nAnnual report", "PELHAM ROYCE STORES"),
        ("Annual report of Tesla for 2022\n\nCars", "Tesla"),
        ("Tesla\n\nAnnual report", "Tesla"),
        ("Geschäftsbericht\n\nNordwind Logistik GmbH\n\nHamburg", "Nordwind Logistik"),
        ("IMPACT REPORT\n\nthe sea", ""),
        ("Travel handbook\n\nthe sea", ""),
    ],
)
def test_a_company_that_only_the_first_page_names(first: str, name: str) -> None:
    """With its legal form on a line of its own, or in the first line; later passages call it the Company."""
    assert subject_of("scan0012.pdf", [first, *LATER]) == " ".join(
        filter(None, ("scan0012", name, "Company", "Sales"))
    )


@pytest.mark.parametrize("filename", ["TESLA_2022_10K.pdf", "TeslaMotors_2022.pdf"])
def test_a_company_that_the_file_is_named_after_adds_no_words(filename: str) -> None:
    """Industries, Stores and Materials turn the vectors of all of a report's passages the same way."""
    first = "FORM 10-K\n\nTesla Industries, Inc.\n\nAnnual report"
    without = "FORM 10-K\n\nAnnual report"
    assert subject_of(filename, [first, *LATER]) == subject_of(filename, [without, *LATER])


@pytest.mark.parametrize(
    ("filename", "passages", "subject"),
    [
        ("scan0012.pdf", REPORT, "scan0012 PELHAM AEROSPACE 2022"),
        ("PELHAM_2022_10K.pdf", REPORT, "PELHAM 2022 10K AEROSPACE"),
        ("AnnualReport.docx", REPORT, "Annual Report PELHAM AEROSPACE 2022"),
        ("3f9a77c0b1.pdf", ["the sea", "the ship"], ""),
        ("20240131-2.pdf", ["nothing is capitalized here", "nor there"], ""),
        ("Pelham.txt", REPORT[:1], ""),
        ("年报.pdf", ["年度报告", "净销售额增长"], "年报"),
        ("empty.txt", [], ""),
    ],
)
def test_names_and_the_year(filename: str, passages: list[str], subject: str) -> None:
    """A word that is also written small is no name. A document of one passage needs no subject."""
    assert subject_of(filename, passages) == subject


def test_of_names_that_are_as_frequent_the_first_are_taken() -> None:
    """In any process: the same document read again, elsewhere, is known by the same words."""
    names = [f"Ny{letter * 3}" for letter in "abcdefghijklmnopqrst"]
    pages = ["the sea, and " + " ".join(names), "the ship, and " + " ".join(reversed(names))]
    assert subject_of("1.pdf", pages) == " ".join(names[:8])


def test_a_subject_is_short() -> None:
    assert len(subject_of("Word" * 60 + ".txt", ["Alpha", "Beta"])) <= 120
