"""Which lines are headings: short ones without a closing mark, except in lists, settings and records."""

from __future__ import annotations

import re
from collections.abc import Sequence

from builtin_plugins.documents.api import asks, ends_sentence, is_endless
from builtin_plugins.rag.answering.tables import is_rule

MARKED = re.compile(r"#{1,6}\s+")
BULLET = re.compile(r"[-*+•‣◦–—]\s+")
ITEM = re.compile(rf"(?:{BULLET.pattern}|\(?\d{{1,3}}[.)]\s+|\(?[a-zA-Z]\)\s+|[a-z]\.\s+)")
SETTING = re.compile(r"[\w.-]{1,60}\s?=\s?[^\s=]")
"""A name and its value: `max_connections = 100`."""
FIELD = re.compile(r"[^\s:|][^:|.!?]{0,48}:\s+\S")
_NUMBERED = re.compile(r"(?:\d|\b[IVXL]+)$")
_LONGEST = 60
_LONGEST_QUESTION = 100
_LONGEST_VALUE = 5
"""The most words in a field and value that end with a period without being prose: "Role: Clerk."."""
_LEAST_ITEMS, _LEAST_LINES = 2, 3
"""How many consecutive short lines make a list: two without bullets may be a title and subtitle."""
_NUMBERS = re.compile(r"\d+")
_LEADING_NUMBER = re.compile(r"^[\d.]+\s")
_AMOUNT = re.compile(r"\d[.,]\d\d\W*$")
_LEAST_NUMBERS, _MOST_WORDS = 2, 8
"""A short line with two numbers is a date, a time or a price rather than a title."""


def body_of(block: str) -> str:
    """A line without its bullet, number or heading mark."""
    marker = ITEM.match(block) or MARKED.match(block)
    return block[marker.end() :] if marker else block


def are_headings(blocks: Sequence[tuple[str, bool]]) -> list[bool]:
    """Which blocks of a text are headings; each block comes with whether it follows the previous one without
    a gap.

    A question is a heading, too, if it is a whole block (`is_question`).
    """
    lines = ["", *(block for block, _ in blocks), ""]
    listed = {at for run in _runs(blocks) if _is_list([blocks[at][0] for at in run]) for at in run}
    return [
        bool(MARKED.match(block)) or (at not in listed and _may_head(block)) or _is_title(lines[at : at + 3])
        for at, (block, _) in enumerate(blocks)
    ]


def is_question(body: str) -> bool:
    """Whether a line is a question that the lines below answer."""
    return len(body) <= _LONGEST_QUESTION and not any(mark in body for mark in "|\t") and asks(body)


def _runs(blocks: Sequence[tuple[str, bool]]) -> list[list[int]]:
    """Runs of adjacent short lines, either all list items or none."""
    runs: list[list[int]] = []
    for at, (block, follows) in enumerate(blocks):
        if not (_is_short(block) or _has_values(block)):
            continue
        if follows and runs and runs[-1][-1] == at - 1 and _is_item(blocks[at - 1][0]) == _is_item(block):
            runs[-1].append(at)
        else:
            runs.append([at])
    return runs


def _is_list(lines: Sequence[str]) -> bool:
    is_sure = _is_item(lines[0]) or any(_has_values(line) for line in lines)
    return len(lines) >= (_LEAST_ITEMS if is_sure else _LEAST_LINES)


def is_value_line(text: str) -> bool:
    """Whether a line only says what a number is of: "TOTAL $821.14"."""
    is_short = len(text) <= _LONGEST and len(text.split()) <= _MOST_WORDS and not ends_sentence(text)
    return is_short and _NUMBERS.search(text) is not None


def _has_values(line: str) -> bool:
    """Whether a line is a date, a time or the like: "Saturday, 12 September 2026", "10:30 a.m."."""
    if len(line) > _LONGEST or len(line.split()) > _MOST_WORDS or is_prose(line):
        return False
    if "|" in line or "\t" in line or ": " in line or MARKED.match(line):
        return False
    return len(_NUMBERS.findall(_LEADING_NUMBER.sub("", line, count=1))) >= _LEAST_NUMBERS


def is_prose(text: str) -> bool:
    """Whether a line is a sentence rather than a field's value: "E7: The filter is full of sand."."""
    return ends_sentence(text) and not asks(text) and len(text.split()) > _LONGEST_VALUE


def _is_brief(body: str) -> bool:
    if len(body) > _LONGEST or "|" in body or "\t" in body:
        return False
    return body[-1:] not in {":", ";", ","} and not ends_sentence(body)


def _is_short(block: str) -> bool:
    body = body_of(block)
    return _is_brief(body) and ": " not in body and not MARKED.match(block) and not is_rule(block)


def _is_item(block: str) -> bool:
    return ITEM.match(block) is not None


def _may_head(block: str) -> bool:
    """Whether a line by itself looks like a heading. Sentences without closing marks have spaces."""
    body = body_of(block)
    if (
        not _is_short(block)
        or ":" in body
        or BULLET.match(block)
        or SETTING.match(body)
        or _AMOUNT.search(body)
    ):
        return False
    return not (" " in body and is_endless(body))


def _is_title(lines: Sequence[str]) -> bool:
    """Whether the second of three lines heads prose, though it looks like a field: "Chapter 3: Storage".

    Without a number it could as well be a field, "Author: Anna Berger".
    """
    before, line, after = lines
    if not FIELD.match(line) or not _is_brief(line) or _is_item(line) or FIELD.match(before):
        return False
    label, _, value = line.partition(":")
    is_numbered = _NUMBERED.search(label) and not any(map(str.isdigit, value))
    return bool(is_numbered) and is_prose(after) and not FIELD.match(after)
