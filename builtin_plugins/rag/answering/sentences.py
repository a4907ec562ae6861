"""Splits text into sentences to quote alone: prose, list items, table rows and ``header: value`` lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from builtin_plugins.documents.api import ends, ends_sentence, is_closed, is_endless
from builtin_plugins.rag.answering.fences import lines_of
from builtin_plugins.rag.answering.headings import (
    FIELD,
    ITEM,
    MARKED,
    SETTING,
    are_headings,
    is_prose,
    is_question,
)
from builtin_plugins.rag.answering.logs import are_records
from builtin_plugins.rag.answering.periods import is_within_sentence
from builtin_plugins.rag.answering.tables import Table, cells_of, is_rule, unit_in
from builtin_plugins.rag.answering.words import INVISIBLE, visible

MAX_SENTENCE = 500
_SHORTEST_CUT = 200
_LONGEST_LABEL = 80
_SOFT_WRAP = 50
_RECORD = 300
_LONGEST_ENDLESS = 150
"""The most characters of a piece without closing marks: 30 words of Thai."""


class Sentence(NamedTuple):
    """One quotable piece; ``start`` is its place in the text, in characters. Headings say little.

    A row is one of several entries: of a table, a list, or a record of fields. The rows `of_table` have the
    names of their columns, as a record of several fields has. Pieces of a sentence longer
    than ``MAX_SENTENCE`` are ``begun`` if they begin within it, and ``unended`` if they end within it.
    """

    text: str
    start: int
    is_heading: bool = False
    is_row: bool = False
    begun: bool = False
    unended: bool = False
    of_table: bool = False


def split_sentences(text: str, language: str | None = None) -> list[Sentence]:
    """The sentences of a text in order, whitespace normalized, none longer than ``MAX_SENTENCE``.

    ``language`` (ISO 639) decides whether a period may make a number an ordinal.
    """
    plain = visible(text)
    if len(plain) == len(text):
        return _split(text, language)
    places = [at for at, char in enumerate(text) if char not in INVISIBLE]
    return [one._replace(start=places[one.start]) for one in _split(plain, language)]


def _split(text: str, language: str | None) -> list[Sentence]:
    sentences: list[Sentence] = []
    table: Table | None = None
    end, is_labeled = 0, False
    blocks = list(_with_headings(text))
    for at, (start, block, heading) in enumerate(blocks):
        if is_rule(block):
            end = start + len(block)
            continue
        cells = cells_of(block)
        is_apart = "\n\n" in text[end:start]
        if table is not None and cells and is_labeled:
            below = cells_of(blocks[at + 1][1]) if at + 1 < len(blocks) else ()
            is_apart = is_apart or table.ends_above(cells, below)
        if table is None or not cells or is_apart:
            if cells:
                above = text[max(0, text.rfind("\n\n", 0, start)) : start]
                table = Table(cells, at_chunk_start=start == 0, unit=unit_in(above))
            elif is_apart or len(block) > _LONGEST_LABEL or ends_sentence(block):
                table = None  # else, the line is a label above some of its rows
            is_labeled = not cells
            sentences += _of_block(start, block, heading, language)
        else:
            is_labeled = False
            rows = (piece for _, piece in _bounded(0, table.row(cells)))
            sentences += [Sentence(piece, start, is_row=True, of_table=True) for piece in rows]
        end = start + len(block)
    return sentences


def _with_headings(text: str) -> Iterator[tuple[int, str, bool]]:
    """The blocks of a text, each with whether it is a heading."""
    blocks = list(_blocks(text))
    ended = [0, *(start + len(block) for start, block, _ in blocks)]
    follows = ["\n\n" not in text[end:start] for end, (start, _, _) in zip(ended, blocks, strict=False)]
    headings = are_headings([(block, near) for (_, block, _), near in zip(blocks, follows, strict=True)])
    return (
        (start, block, heading and not code)
        for (start, block, code), heading in zip(blocks, headings, strict=True)
    )


def _blocks(text: str) -> Iterator[tuple[int, str, bool]]:
    """Lines, joined if a line break only wraps a paragraph or separates the fields of a record; each with
    whether it is code.
    """
    start, block, place, before, code = 0, "", 0, "", False
    for line, now_code in lines_of(text):
        stripped = line.strip()
        if "\t" in stripped:  # a row of a table, whose first cells may be empty
            stripped = line.strip(" \r\n")
        same_record = _same_record(block, before, stripped)
        apart = are_records(block, stripped) or not _continues(block, stripped)
        if block and (code or now_code or (apart and not same_record)):
            yield start, block, code
            block, same_record = "", False
        code = now_code
        if stripped:
            start = place + line.index(stripped) if not block else start
            joint = "; " if same_record else "\n"
            block = f"{block}{joint}{stripped}" if block else stripped
        place += len(line)
        before = stripped
    if block:
        yield start, block, code


def _same_record(block: str, before: str, line: str) -> bool:
    """Whether fields belong to one row, as they follow each other without a gap; a single one would not tell
    whose it is. A repeated field begins the next row.
    """
    both = bool(block and not ITEM.match(line) and FIELD.match(before) and FIELD.match(line))
    if not both or is_prose(before) or f"; {line[: line.index(':') + 1]}" in f"; {block}":
        return False
    return len(block) + len(line) < _RECORD and not are_records(block, line)


def _continues(block: str, line: str) -> bool:
    if not line or _stands_alone(line) or MARKED.match(block) or "|" in block or "\t" in block:
        return False
    return line[0].islower() or (
        len(block) >= _SOFT_WRAP and block[-1] not in ":;" and not ends_sentence(block)
    )


def _stands_alone(line: str) -> bool:
    return (
        bool(ITEM.match(line) or MARKED.match(line) or FIELD.match(line) or SETTING.match(line))
        or "|" in line
        or "\t" in line
    )


def _of_block(start: int, block: str, heading: bool, language: str | None) -> Iterator[Sentence]:
    marker = ITEM.match(block) or MARKED.match(block)
    offset = marker.end() if marker else 0
    body = block[offset:]
    row = _stands_alone(block) and not MARKED.match(block)
    pieces = [
        (at + len(piece) - len(piece.lstrip()), text)
        for at, piece in _pieces(body, language)
        if (text := _clean(piece))
    ]
    heading = heading or (len(pieces) == 1 and is_question(body))
    fields = block.split("; ") if row and "|" not in block else []
    is_record = len(fields) > 1 and all(FIELD.match(one) for one in fields)
    begun = False
    for count, (at, text) in enumerate(pieces, 1):
        unended = count < len(pieces) and len(text) > _SHORTEST_CUT and not is_closed(text)
        yield Sentence(text, start + offset + at, heading, row, begun, unended, is_record)
        begun = unended


def _pieces(body: str, language: str | None) -> Iterator[tuple[int, str]]:
    begin = 0
    for match in ends(body):
        if not is_within_sentence(body, match, language):
            yield from _bounded(begin, body[begin : match.end()])
            begin = match.end()
    yield from _bounded(begin, body[begin:])


def _bounded(start: int, piece: str) -> Iterator[tuple[int, str]]:
    """Text without punctuation, as in Thai or extracted from tables, cut between lines or at spaces."""
    longest = _LONGEST_ENDLESS if is_endless(piece) else MAX_SENTENCE
    while len(piece) > longest:
        cut = max(piece.rfind("\n", longest // 3, longest), 0) or piece.rfind(" ", longest // 2, longest)
        cut = cut if cut > 0 else longest
        yield start, piece[:cut]
        start, piece = start + cut, piece[cut:]
    yield start, piece


def _clean(piece: str) -> str:
    if "|" not in piece:
        return " ".join(piece.split())
    return " ".join(piece.replace("|", " | ").split()).strip("| ")
