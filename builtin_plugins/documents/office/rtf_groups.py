"""Rearranges what the RTF converter drops or mixes up, before it reads the file.

It drops footnotes, comments and text boxes with the groups that contain them, keeps what tracked changes
deleted, mixes up Asian letters, and shows neither where a table row begins nor what is superscript.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

ROW_START, CELL_END, ROW_END, RAISED = "\ue001", "\ue002", "\ue003", "\ue004"

# Groups open and close; a brace after a backslash is text.
_BRACE: Final = re.compile(rb"\\[\\{}]|[{}]")
# Possessive: there is only one way to assign the white space between two words.
_WORD: Final = rb"\s{0,4}+\\(?:\*|[a-z]{1,32}+-?+\d{0,10}+ ?+)"
# The control words at the start of a group: the first decides, but `\deleted` may follow others.
_APART: Final = re.compile(rb"\s{0,4}(?:\\\*\s{0,4})?\\(?:footnote|annotation|shptxt)(?![a-z])")
_DELETED: Final = re.compile(rb"(?:" + _WORD + rb"){0,40}?\s{0,4}\\deleted(?![a-z0])")
# Superscript, or letters raised by some half points, as LibreOffice writes it.
_TOLD: Final = re.compile(rb"(?<!\\)\\(?:(trowd|cell|row|super)(?![a-z0-9])|(up)[1-9]\d{0,4}+) ?")
# A two-byte letter; many programs write its second byte as the ASCII character with that code.
_TWO_BYTES: Final = re.compile(
    rb"(\\'(?:8[1-9a-f]|[9a-f][0-9a-f]))(?:(\\'..)|\\([\\{}])|([@-\[\]-z|~]))", re.IGNORECASE
)
_BINARY: Final = re.compile(rb"\\bin\d")
_MARKS: Final = {b"trowd": ROW_START, b"cell": CELL_END, b"row": ROW_END, b"super": RAISED, b"up": RAISED}


class _Group(NamedTuple):
    start: int
    apart: bool = False
    deleted: bool = False


def end_of_document(data: bytes) -> int:
    """Where the outermost group ends, as programs read no further; 0 if it doesn't."""
    depth = 0
    for brace in _BRACE.finditer(data):
        depth += {b"{": 1, b"}": -1}.get(brace[0], 0)
        if depth == 0 and brace[0] == b"}":
            return brace.end()
    return 0


def arranged(data: bytes) -> bytes:
    """The file without deleted text, with notes and boxes moved to its end, and marks around rows and before
    superscript.

    A file with binary pictures, which may contain any byte, stays as it is.
    """
    if _BINARY.search(data):
        return data
    kept: list[bytes] = []
    beside: list[bytes] = []
    place = 0
    for start, end, is_deleted in _groups(data):
        kept.append(data[place:start])
        if not is_deleted:
            beside.append(b"{\\par " + _APART.sub(b"", data[start + 1 : end - 1], count=1) + b"\\par}")
        place = end
    kept.append(data[place:])
    whole = b"".join(kept)
    last = whole.rfind(b"}")
    whole = _TWO_BYTES.sub(_in_hexadecimal, b"".join([whole[:last], *beside, whole[last:]]))
    return _TOLD.sub(_marked, whole)


def _groups(data: bytes) -> list[tuple[int, int, bool]]:
    """Where the groups are that are moved or dropped; only the outermost of nested ones."""
    open_groups: list[_Group] = []
    found: list[tuple[int, int, bool]] = []
    inside = 0
    for brace in _BRACE.finditer(data):
        at = brace.end()
        if brace[0] == b"{":
            group = _Group(at - 1)
            if not inside:
                apart = _APART.match(data, at) is not None
                group = _Group(at - 1, apart, not apart and _DELETED.match(data, at) is not None)
            inside += group.apart or group.deleted
            open_groups.append(group)
        elif brace[0] == b"}" and open_groups:
            group = open_groups.pop()
            if group.apart or group.deleted:
                inside -= 1
                found.append((group.start, at, group.deleted))
    return found


def _in_hexadecimal(match: re.Match[bytes]) -> bytes:
    """Both bytes in hexadecimal: the converter decodes nothing else; a Latin letter stays the same."""
    first, second, *written = match.groups()
    return first + (second or b"\\'%02x" % ord(written[0] or written[1]))


def _marked(match: re.Match[bytes]) -> bytes:
    return b"{\\uc0\\u%d }" % (ord(_MARKS[match[1] or match[2]]) - 65_536)
