"""CSV and similar formats: a row becomes lines of `header: value`, so that it is meaningful by itself."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Final

from builtin_plugins.documents.blocks import Block, UnparsableDocument
from builtin_plugins.documents.detection import find_delimiter
from builtin_plugins.documents.tables.portions import FIRST_ROWS, titles_above
from builtin_plugins.documents.text.encoding import open_text, repair

MAX_FIELD_CHARS: Final = 16 * 1024 * 1024
_SAMPLE_CHARS: Final = 32_768
_LEAST: Final = 0.01  # share of the rows that must agree with the first
_DECLARED: Final = re.compile(r"\ufeff?sep=([^\"\s\w]|\t)\s*$", re.IGNORECASE)
# Within a cell: what follows does not end it. A path may end with a backslash before its last quote.
_ESCAPED_QUOTE: Final = re.compile(r'[^\\]\\"(?![,;|\t\r\n]|$)')
_EMPTY_CELL: Final = re.compile(r'(?:^|(?<=[,;|\t]))""(?=[,;|\t\r\n]|$)', re.MULTILINE)
_YEAR: Final = re.compile(r"(?:19|20)\d\d")


def parse(path: Path) -> Iterator[Block]:
    """Yield a block per row; empty cells are left out, cells without a name are `column N`. A title above the
    names of the columns is a block of its own.

    The delimiter (comma, semicolon, tab, bar) is found from the first rows. Raises `UnparsableDocument` with
    `too_large` for a line of more than 16 million characters and `corrupt` for a quote that never closes.
    """
    rows = rows_of(path)
    first = list(islice(rows, FIRST_ROWS))
    titles = titles_above(first)
    first += islice(rows, titles)
    yield from (Block("".join(row).strip()) for row in first[:titles])
    head, data = first[titles : titles + 1], first[titles + 1 :]
    names = head[0] if head and _is_header(head[0], data) else []
    if names and not data:
        yield Block("\n".join(name for name in names if name.strip()))
    for row in chain([] if names else head, data, rows):
        yield Block(_record(names, row))


def rows_of(path: Path) -> Iterator[list[str]]:
    """The rows that aren't blank, titles and names included. Raises what `parse` raises."""
    declared = _declared_delimiter(path)
    lines = islice(_lines(path), 1 if declared else 0, None)
    escape = "\\" if _escapes(path) else None
    return _rows(csv.reader(lines, delimiter=declared or _delimiter(path), escapechar=escape))


def _declared_delimiter(path: Path) -> str | None:
    """The delimiter named in a first line such as `sep=;`, which Excel reads and writes."""
    with open_text(path) as file:
        declaration = _DECLARED.match(file.readline(_SAMPLE_CHARS))
    return declaration[1] if declaration else None


def _delimiter(path: Path) -> str:
    """The delimiter of the rows, or of the rows below a title that contains none."""
    with open_text(path) as file:
        sample = file.read(_SAMPLE_CHARS)
    if delimiter := find_delimiter(sample, least=_LEAST):
        return delimiter
    lines = sample.splitlines(keepends=True)
    below = ("".join(lines[at:]) for at in range(1, FIRST_ROWS))
    return next(filter(None, map(find_delimiter, below)), ",")


def _escapes(path: Path) -> bool:
    """Whether quotes within quotes follow a backslash, as Spark and MySQL write them, instead of being
    doubled.
    """
    with open_text(path) as file:
        sample = file.read(_SAMPLE_CHARS)
    return _ESCAPED_QUOTE.search(sample) is not None and '""' not in _EMPTY_CELL.sub("", sample)


def _lines(path: Path) -> Iterator[str]:
    with open_text(path, newline="") as file:
        while line := file.readline(MAX_FIELD_CHARS):
            if len(line) == MAX_FIELD_CHARS:
                raise UnparsableDocument("too_large", "csv: line of more than 16 million characters")
            yield repair(line)


def _rows(reader: Iterator[list[str]]) -> Iterator[list[str]]:
    # Setting this module-wide is safe: each parser has its own process.
    before = csv.field_size_limit(MAX_FIELD_CHARS)
    try:
        yield from (row for row in reader if any(cell.strip() for cell in row))
    except csv.Error as error:
        raise UnparsableDocument("corrupt", f"csv: {error}") from error
    finally:
        csv.field_size_limit(before)


def _is_header(row: list[str], below: list[list[str]]) -> bool:
    """Whether a row names the columns: distinct words, or text above numbers; years count as names."""
    names = [name.strip() for name in row]
    numbers = [name for name in names if _is_number(name)]
    if len(numbers) == len(names) or not all(map(_YEAR.fullmatch, numbers)):
        return False
    distinct = len(set(names)) == len(names)
    if all(names) and distinct and not numbers:
        return True
    if numbers:
        return distinct and not any(_is_same_kind(column, row, below) for column in range(len(row)))
    return any(name and _are_numbers(column, below) for column, name in enumerate(names))


def _is_same_kind(column: int, row: list[str], below: list[list[str]]) -> bool:
    """Whether a year is followed by more years below it."""
    cells = [other[column].strip() for other in below if column < len(other)]
    return bool(_YEAR.fullmatch(row[column].strip())) and any(map(_YEAR.fullmatch, cells))


def _are_numbers(column: int, rows: list[list[str]]) -> bool:
    cells = [row[column].strip() for row in rows if column < len(row) and row[column].strip()]
    return bool(cells) and all(map(_is_number, cells))


def _is_number(text: str) -> bool:
    return text.lstrip("+-").replace(".", "", 1).replace(",", "", 1).isdigit()


def _record(names: list[str], row: list[str]) -> str:
    cells = ((_name(names, index), value.strip()) for index, value in enumerate(row))
    return "\n".join(f"{name}: {value}" for name, value in cells if value)


def _name(names: list[str], index: int) -> str:
    named = " ".join(names[index].split()) if index < len(names) else ""
    return named or f"column {index + 1}"
