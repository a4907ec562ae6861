"""Splits text into sentences to quote alone: prose, list items, table rows and ``header: value`` lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from builtin_plugins.rag.answering.abbreviations import is_abbreviation
from builtin_plugins.rag.answering.ends import asks, ends, ends_sentence, is_closed
from builtin_plugins.rag.answering.fences import lines_of
from builtin_plugins.rag.answering.headings import ITEM, MARKED, SETTING, are_headings, is_question
from builtin_plugins.rag.answering.logs import are_records
from builtin_plugins.rag.answering.ordinals import is_ordinal
from builtin_plugins.rag.answering.tables import Table, cells_of, is_rule
from builtin_plugins.rag.answering.words import INVISIBLE, visible

MAX_SENTENCE = 500
_SHORTEST_CUT = 200
_SOFT_WRAP = 50
_RECORD = 300
_LONGEST_VALUE = 5
"""The most words in a field and value that end with a period without being prose: "Role: Clerk."."""
_FIELD = re.compile(r"[^\s:|][^:|.!?]{0,48}:\s+\S")
_BEFORE = re.compile(r"((?:[^\W_]|[\u0900-\u0903\u093a-\u094f])+(?:\.[^\W_]+)*)$")  # with the vowels of Hindi
_WORD = re.compile(r"[^\W_]+")
_THAI = re.compile(r"(?<![\u0e00-\u0eff])[\u0e00-\u0eff]{1,4}$")  # a period after this few is part of "พ.ศ."
_NEXT_LETTER = re.compile(r"\s+[^\W\d_]\.")  # part of an abbreviation with spaces, as in German: "z. B."
_LONGEST_ABBREVIATION = 20
_NO_ABBREVIATION = 7
"""Consecutive letters, more than any abbreviation has."""


class Sentence(NamedTuple):
    """One quotable piece; ``start`` is its place in the text, in characters. Headings say little.

    A row is one of several entries: of a table, a list, or a record of fields. Pieces of a sentence longer
    than ``MAX_SENTENCE`` are ``begun`` if they begin within it, and ``unended`` if they end within it.
    """

    text: str
    start: int
    is_heading: bool = False
    is_row: bool = False
    begun: bool = False
    unended: bool = False


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
    found: list[Sentence] = []
    table: Table | None = None
    end = 0
    for start, block, heading in _with_headings(text):
        if is_rule(block):
            end = start + len(block)
            continue
        cells = cells_of(block)
        if table is None or not cells or "\n\n" in text[end:start]:
            table = Table(cells, at_chunk_start=start == 0) if cells else None
            found += _of_block(start, block, heading, language)
        else:
            found += [Sentence(piece, start, is_row=True) for _, piece in _bounded(0, table.row(cells))]
        end = start + len(block)
    return found


def _with_headings(text: str) -> Iterator[tuple[int, str, bool]]:
    """The blocks of a text, each with whether it is a heading."""
    blocks = list(_blocks(text))
    ended = [0, *(start + len(block) for start, block, _ in blocks)]
    follows = ["\n\n" not in text[end:start] for end, (start, _, _) in zip(ended, blocks, strict=False)]
    found = are_headings([(block, near) for (_, block, _), near in zip(blocks, follows, strict=True)])
    return (
        (start, block, heading and not code)
        for (start, block, code), heading in zip(blocks, found, strict=True)
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
            block = f"{block}{'; ' if same_record else ' '}{stripped}" if block else stripped
        place += len(line)
        before = stripped
    if block:
        yield start, block, code


def _same_record(block: str, before: str, line: str) -> bool:
    """Whether fields belong to one row, as they follow each other without a gap; a single one would not tell
    whose it is. A repeated field begins the next row.
    """
    both = bool(block and not ITEM.match(line) and _FIELD.match(before) and _FIELD.match(line))
    if not both or _is_prose(before) or f"; {line[: line.index(':') + 1]}" in f"; {block}":
        return False
    return len(block) + len(line) < _RECORD and not are_records(block, line)


def _is_prose(field: str) -> bool:
    """Whether a name is followed by prose rather than a value: "E7: The filter is full of sand."."""
    return ends_sentence(field) and not asks(field) and len(field.split()) > _LONGEST_VALUE


def _continues(block: str, line: str) -> bool:
    if not line or _stands_alone(line) or MARKED.match(block) or "|" in block or "\t" in block:
        return False
    return line[0].islower() or (
        len(block) >= _SOFT_WRAP and block[-1] not in ":;" and not ends_sentence(block)
    )


def _stands_alone(line: str) -> bool:
    return (
        bool(ITEM.match(line) or MARKED.match(line) or _FIELD.match(line) or SETTING.match(line))
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
    begun = False
    for count, (at, text) in enumerate(pieces, 1):
        unended = count < len(pieces) and len(text) > _SHORTEST_CUT and not is_closed(text)
        yield Sentence(text, start + offset + at, heading, row, begun, unended)
        begun = unended


def _pieces(body: str, language: str | None) -> Iterator[tuple[int, str]]:
    begin = 0
    for match in ends(body):
        if not _inside_sentence(body, match, language):
            yield from _bounded(begin, body[begin : match.end()])
            begin = match.end()
    yield from _bounded(begin, body[begin:])


def _inside_sentence(body: str, end: re.Match[str], language: str | None) -> bool:
    """Whether a period belongs to an abbreviation, an initial or an ordinal."""
    at = end.start()
    if body[at] == "." and body[at - 3 : at].lower() == "str":  # "Hauptstr. 5", however long its name is
        return True
    if body[at] != "." or (at >= _NO_ABBREVIATION and body[at - _NO_ABBREVIATION : at].isalnum()):
        return False
    if not body[at - 1 : at].isascii() and _THAI.search(body, max(at - _LONGEST_ABBREVIATION, 0), at):
        return True
    if not (before := _BEFORE.search(body, max(at - _LONGEST_ABBREVIATION, 0), at)):
        return False
    word = before.group(1)
    following = body[end.end() :].lstrip()[:1]
    if is_abbreviation(word, following):
        return True
    if len(word) == 1 and word.isalpha() and _NEXT_LETTER.match(body, end.end()):
        return True
    return is_ordinal(word, _next_word(body, end.end()), language)


def _next_word(body: str, at: int) -> str:
    found = _WORD.search(body, at)
    return found[0] if found else ""


def _bounded(start: int, piece: str) -> Iterator[tuple[int, str]]:
    """Text without punctuation, as extraction from tables leaves it, cut at spaces."""
    while len(piece) > MAX_SENTENCE:
        cut = piece.rfind(" ", MAX_SENTENCE // 2, MAX_SENTENCE)
        cut = cut if cut > 0 else MAX_SENTENCE
        yield start, piece[:cut]
        start, piece = start + cut, piece[cut:]
    yield start, piece


def _clean(piece: str) -> str:
    if "|" not in piece:
        return " ".join(piece.split())
    return " ".join(piece.replace("|", " | ").split()).strip("| ")
