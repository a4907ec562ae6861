"""Markdown, kept as written except for what no reader sees: base64 pictures, and comments outside code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from builtin_plugins.documents.blocks import Block, Heading
from builtin_plugins.documents.markup.front_matter import note_front_matter
from builtin_plugins.documents.text.encoding import read_lines

_MAX_LINE_CHARS: Final = 32_768
_BLOCK_CHARS: Final = 8_192
_INLINE_DATA: Final = re.compile(r"data:[\w.+/-]{1,100};base64,[A-Za-z0-9+/=]*")
_DATA_TAIL: Final = re.compile(r"[A-Za-z0-9+/=]*")
_COMMENT: Final = re.compile(r"<!--.*?(?:-->|(\Z))", re.DOTALL)
_FENCE: Final = re.compile(r" {0,3}(`{3,}+(?=[^`]*$)|~{3,}+)(.*)")
_HEADING: Final = re.compile(r" {0,3}(#{1,6})\s+[^\s#].{0,300}")
_COMMENT_START: Final = "<!--"
_SHIELD: Final = "\x1f"  # keeps the start of a comment in code from being one; never left in the text


def parse(path: Path) -> Iterator[Block]:
    """Yield the text in blocks of about 8,192 characters that end at a blank line outside fenced code."""
    note_front_matter(path)
    lines: list[str] = []
    headings: list[Heading] = []
    size, fence = 0, ""
    for line in _visible(read_lines(path, _MAX_LINE_CHARS)):
        fence = _fence_after(line, fence)
        full = size >= _BLOCK_CHARS and not fence and not line.strip()
        if full or size >= 4 * _BLOCK_CHARS:
            yield _block(lines, headings)
            lines, headings, size = [], [], 0
        if not fence and (heading := _HEADING.fullmatch(line)):
            line = line.strip()
            headings.append(Heading(len(heading[1]), line))
        lines.append(line.replace(_COMMENT_START, f"<{_SHIELD}!--") if fence else line)
        size += len(line) + 1
    yield _block(lines, headings)


def _block(lines: list[str], headings: list[Heading]) -> Block:
    """The lines without comments, and the headings that are not in one."""
    text = _without_comments(lines)
    visible_lines = set(text.split("\n")) if headings else set()
    return Block(text, headings=[one for one in headings if one.text in visible_lines])


def _fence_after(line: str, fence: str) -> str:
    """The fence of the code that goes on after a line; only one as long, and nothing else, ends it."""
    opening = _FENCE.match(line)
    if not opening:
        return fence
    if not fence:
        return opening[1]
    return "" if opening[1].startswith(fence) and not opening[2].strip() else fence


def _visible(lines: Iterator[str]) -> Iterator[str]:
    """Drop inline data, even in a line so long that it comes in several parts."""
    inside = False
    for line in lines:
        start = len(_leading_data(line)) if inside else 0
        ends = [start] if inside else []
        ends += [data.end() for data in _INLINE_DATA.finditer(line, start)]
        inside = len(line) == _MAX_LINE_CHARS and ends[-1:] == [len(line)]
        yield _INLINE_DATA.sub("", line[start:]) if ends else line


def _leading_data(line: str) -> str:
    tail = _DATA_TAIL.match(line)
    return tail[0] if tail else ""


def _without_comments(lines: list[str]) -> str:
    return _COMMENT.sub(_unless_closed, "\n".join(lines)).replace(_SHIELD, "")


def _unless_closed(comment: re.Match[str]) -> str:
    """What starts as a comment and never ends is text."""
    return "" if comment[1] is None else comment[0]
