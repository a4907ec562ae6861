"""CSV and its relatives: a row becomes lines of `header: value`, so that it means something by itself."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final

from builtin_plugins.rag.parsing.blocks import Block, UnparsableDocument
from builtin_plugins.rag.parsing.encoding import open_text, repair
from builtin_plugins.rag.parsing.flavours import find_delimiter

MAX_FIELD_CHARS: Final = 16 * 1024 * 1024
_SAMPLE_CHARS: Final = 32_768


def parse(path: Path) -> Iterator[Block]:
    """Yield a block per row; empty cells are left out, cells beyond the header are `column N`.

    The delimiter (comma, semicolon, tab, bar) is found from the first rows. Raises `UnparsableDocument` with
    `too_large` for a line of more than 16 million characters and `corrupt` for a quote that never closes.
    """
    reader = csv.reader(_lines(path), delimiter=_delimiter(path))
    rows = _rows(reader)
    first = next(rows, [])
    names, data = (first, rows) if _is_header(first) else ([], chain([first], rows))
    if names and (row := next(data, None)) is None:
        yield Block("\n".join(names))
    elif names and row is not None:
        data = chain([row], data)
    for row in data:
        yield Block(_record(names, row))


def _delimiter(path: Path) -> str:
    with open_text(path) as file:
        return find_delimiter(file.read(_SAMPLE_CHARS), least=0.0) or ","


def _lines(path: Path) -> Iterator[str]:
    with open_text(path, newline="") as file:
        while line := file.readline(MAX_FIELD_CHARS):
            if len(line) == MAX_FIELD_CHARS:
                raise UnparsableDocument("too_large", "csv: line of more than 16 million characters")
            yield repair(line)


def _rows(reader: Iterator[list[str]]) -> Iterator[list[str]]:
    # The module-wide setting is safe here: a parser has its process to itself.
    before = csv.field_size_limit(MAX_FIELD_CHARS)
    try:
        yield from (row for row in reader if any(cell.strip() for cell in row))
    except csv.Error as error:
        raise UnparsableDocument("corrupt", f"csv: {error}") from error
    finally:
        csv.field_size_limit(before)


def _is_header(row: list[str]) -> bool:
    names = [name.strip() for name in row]
    return all(names) and len(set(names)) == len(names) and not any(_is_number(name) for name in names)


def _is_number(text: str) -> bool:
    return text.lstrip("+-").replace(".", "", 1).replace(",", "", 1).isdigit()


def _record(names: list[str], row: list[str]) -> str:
    cells = ((_name(names, index), value.strip()) for index, value in enumerate(row))
    return "\n".join(f"{name}: {value}" for name, value in cells if value)


def _name(names: list[str], index: int) -> str:
    return names[index].strip() if index < len(names) else f"column {index + 1}"
