"""Cells of a workbook say what they show: shares in per cent, sums with their currency, days as days."""

from __future__ import annotations

import io
from datetime import date, datetime, timedelta
from pathlib import Path

import openpyxl
import pytest

from builtin_plugins.rag.parsing import from_xlsx
from tests.builtin_plugins.rag.documents import rewrite


def book(path: Path, value: object, number_format: str | None = None) -> Path:
    """A workbook with one value below its name."""
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    assert sheet is not None
    sheet.append(["Name"])
    sheet.append([value])
    if number_format:
        sheet.cell(2, 1).number_format = number_format
    buffer = io.BytesIO()
    workbook.save(buffer)
    path.write_bytes(buffer.getvalue())
    return path


def shown(path: Path) -> str:
    return [block.text for block in from_xlsx.parse(path)][1].split("\n")[1]


@pytest.mark.parametrize(
    ("value", "number_format", "expected"),
    [
        (0.125, "0%", "12.5%"),
        (0.07, "0.00%", "7%"),
        (1200.5, "#,##0.00 €", "1200.5 €"),
        (99, '"$"#,##0', "99 $"),
        (99, "$#,##0_);($#,##0)", "99 $"),
        (99, "[$€-407] #,##0", "99 €"),
        (99, "[$CHF-807] #,##0", "99 CHF"),
        (99, "[$-409]#,##0", "99"),
        (99, '0 "% of all"', "99"),
        (99, None, "99"),
        (date(2024, 5, 1), None, "2024-05-01"),
        (datetime(2024, 5, 1, 13, 30), None, "2024-05-01 13:30:00"),
        (timedelta(hours=26, minutes=5), None, "26:05:00"),
        (True, None, "True"),
    ],
)
def test_values_as_they_are_shown(
    tmp_path: Path, value: object, number_format: str | None, expected: str
) -> None:
    """A share of 12.5% is not 0.125, and a day has no midnight."""
    assert shown(book(tmp_path / "a.xlsx", value, number_format)) == expected


def test_style_that_is_not_there(tmp_path: Path) -> None:
    """A number whose style the workbook lacks is read as it is."""
    path = book(tmp_path / "a.xlsx", 7, "0%")
    rewrite(path, lambda name, data: data.replace(b' s="1"', b' s="77"'))
    assert shown(path) == "7"
