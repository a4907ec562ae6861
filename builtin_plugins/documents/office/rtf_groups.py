"""Rearranges what the RTF converter drops or mixes up, before it reads the file.

It drops footnotes, comments, text boxes, headers and footers with the groups that contain them, as well as
what embedded objects show, numbers of old lists and text that is there twice, for readers with and without
Unicode; it keeps what tracked changes deleted, mixes up Asian letters, and shows neither where a table row
begins nor what is superscript or a heading.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

ROW_START, CELL_END, ROW_END, RAISED = "\ue001", "\ue002", "\ue003", "\ue004"
HEADINGS: Final = "\ue010\ue011\ue012\ue013\ue014\ue015\ue016\ue017\ue018"
"""The marks before headings, from the highest level."""

# Groups open and close; a brace after a backslash is text.
_BRACE: Final = re.compile(rb"\\[\\{}]|[{}]")
# Possessive: there is only one way to assign the white space between two words.
_WORD: Final = rb"\s{0,4}+\\(?:\*|[a-z]{1,32}+-?+\d{0,10}+ ?+)"
# The control words at the start of a group: the first decides, but `\deleted` may follow others.
_APART: Final = re.compile(
    rb"\s{0,4}(?:\\\*\s{0,4})?\\(?:footnote|annotation|shptxt|shprslt|dptxbxtext|(?P<page>(?:header|footer)[lrf]?))(?![a-z])"
)
_BOX: Final = b"\\shptxt"
_OLD_BOX: Final = b"\\dptxbxtext"
_DELETED: Final = re.compile(rb"(?:" + _WORD + rb"){0,40}?\s{0,4}\\deleted(?![a-z0])")
# The text without Unicode comes first, in a group of its own.
_TWICE: Final = re.compile(rb"\\upr\s{0,4}\Z")
_TWICE_CHARS: Final = 8
_SHOWN: Final = re.compile(rb"(?<!\\)\\(?:object|result|upr|pntext|\*\s{0,4}\\ud)(?![a-z0-9-]) ?")
# The number of a list's item; programs that write it newly repeat it for readers from before 1997.
_OLD_NUMBER: Final = re.compile(rb"\s{0,4}\\pntext(?![a-z])")
_NUMBER: Final = b"\\listtext"
# A drawing, and what readers from before 1997 show in its place.
_DRAWING: Final = re.compile(rb"\s{0,4}\\shp(?![a-z])")
_LOOK: Final = re.compile(rb"\s{0,4}\\shprslt(?![a-z])")
# Superscript, or letters raised by some half points, as LibreOffice writes it.
_TOLD: Final = re.compile(
    rb"(?<!\\)\\(?:(trowd|cell|row|super)(?![a-z0-9])|(up)[1-9]\d{0,4}+|outlinelevel([0-8])(?!\d)) ?"
)
# A two-byte letter; many programs write its second byte as the ASCII character with that code.
_TWO_BYTES: Final = re.compile(
    rb"(\\'(?:8[1-9a-f]|[9a-f][0-9a-f]))(?:(\\'..)|\\([\\{}])|([@-\[\]-z|~]))", re.IGNORECASE
)
_BINARY: Final = re.compile(rb"(?<!\\)\\bin(\d{1,9}) ?")
_MARKS: Final = {b"trowd": ROW_START, b"cell": CELL_END, b"row": ROW_END, b"super": RAISED, b"up": RAISED}


def end_of_document(data: bytes) -> int:
    """Where the outermost group ends, as programs read no further; 0 if it doesn't."""
    depth = 0
    for brace in _BRACE.finditer(data):
        depth += {b"{": 1, b"}": -1}.get(brace[0], 0)
        if depth == 0 and brace[0] == b"}":
            return brace.end()
    return 0


def without_binary(data: bytes) -> bytes:
    """The file without binary pictures, whose bytes may look like anything."""
    pieces: list[bytes] = []
    place = 0
    while picture := _BINARY.search(data, place):
        pieces.append(data[place : picture.start()])
        place = picture.end() + int(picture[1])
    return b"".join([*pieces, data[place:]])


def arranged(data: bytes) -> bytes:
    """The file without deleted text, with notes, boxes, headers and footers moved to its end, and marks
    around rows and before superscript and headings.
    """
    gone = groups(data, lambda at: _is_deleted(data, at) and not _APART.match(data, at))
    data = without_repetitions(b"".join(between(data, gone)))
    # In these, the box inside is meant.
    drawn = {start + 1 for start, end in groups(data, _at(data, _LOOK)) if _OLD_BOX in data[start:end]}
    moved = groups(data, lambda at: at not in drawn and _APART.match(data, at) is not None)
    beside: dict[bytes, bytes] = {}
    for start, end in moved:
        word = _APART.match(data, start + 1)
        assert word is not None
        text = data[word.end() : end - 1]
        # Each section repeats its headers.
        beside.setdefault(text if word["page"] else b"%d" % start, b"{\\par " + text + b"\\par}")
    whole = b"".join(between(data, moved))
    last = whole.rfind(b"}")
    whole = _TWO_BYTES.sub(_in_hexadecimal, b"".join([whole[:last], *beside.values(), whole[last:]]))
    return _TOLD.sub(_marked, _SHOWN.sub(b"", whole))


def without_repetitions(data: bytes) -> bytes:
    """The file without what only repeats something for readers from before 1997: the numbers of lists, and
    the texts of drawings.
    """
    repeated = groups(data, _at(data, _OLD_NUMBER)) if _NUMBER in data else []
    for start, end in groups(data, _at(data, _DRAWING)) if _BOX in data else ():
        drawing = data[start:end]
        if _BOX in drawing:
            repeated += [(start + one, start + other) for one, other in groups(drawing, _at(drawing, _LOOK))]
    return b"".join(between(data, sorted(repeated)))


def _at(data: bytes, word: re.Pattern[bytes]) -> Callable[[int], bool]:
    """Whether a group begins with this word, asked with where its content begins."""
    return lambda at: word.match(data, at) is not None


def _is_deleted(data: bytes, at: int) -> bool:
    """Whether a group that begins at `at` is deleted, or there again with Unicode."""
    return bool(_DELETED.match(data, at) or _TWICE.search(data[max(0, at - 1 - _TWICE_CHARS) : at - 1]))


def between(data: bytes, parts: list[tuple[int, int]]) -> Iterator[bytes]:
    """What isn't in any of the groups."""
    place = 0
    for start, end in parts:
        yield data[place:start]
        place = end
    yield data[place:]


def groups(data: bytes, is_meant: Callable[[int], bool]) -> list[tuple[int, int]]:
    """Where the groups are that are meant, asked with where their content begins; only the outermost of
    nested ones.
    """
    open_groups: list[tuple[int, bool]] = []
    spans: list[tuple[int, int]] = []
    inside = 0
    for brace in _BRACE.finditer(data):
        at = brace.end()
        if brace[0] == b"{":
            meant = not inside and is_meant(at)
            inside += meant
            open_groups.append((at - 1, meant))
        elif brace[0] == b"}" and open_groups:
            start, meant = open_groups.pop()
            if meant:
                inside -= 1
                spans.append((start, at))
    return spans


def _in_hexadecimal(match: re.Match[bytes]) -> bytes:
    """Both bytes in hexadecimal: the converter decodes nothing else; a Latin letter stays the same."""
    first, second, *written = match.groups()
    return first + (second or b"\\'%02x" % ord(written[0] or written[1]))


def _marked(match: re.Match[bytes]) -> bytes:
    mark = HEADINGS[int(match[3])] if match[3] else _MARKS[match[1] or match[2]]
    return b"{\\uc0\\u%d }" % (ord(mark) - 65_536)
