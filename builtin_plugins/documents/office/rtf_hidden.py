"""Hidden text in RTF (`\\v`), which its reader does not see: left out, and counted."""

from __future__ import annotations

import re
from typing import Final

from striprtf.striprtf import destinations

from builtin_plugins.documents.omissions import omit

_HIDDEN: Final = re.compile(rb"(?<!\\)\\v1?(?![A-Za-z0-9])")
_TOKEN: Final = re.compile(
    rb"\\(?P<word>[A-Za-z]{1,32})(?P<number>-?\d{1,10})? ?"
    rb"|\\'[0-9a-fA-F]{2}|\\(?P<sign>[^A-Za-z])|(?P<brace>[{}])|[^\\{}]+"
)
_LETTERS: Final = frozenset(
    b"u tab line emdash endash emspace enspace qmspace bullet lquote rquote ldblquote rdblquote".split()
)
"""Control words that are text."""


def without_hidden(data: bytes) -> bytes:
    """The file without the text that is hidden; its formatting stays, as it may go on."""
    if not _HIDDEN.search(data):
        return data
    pieces: list[bytes] = []
    state = (False, False)  # whether text is hidden, and whether nobody would see it anyway
    stack: list[tuple[bool, bool]] = []
    is_inside, runs = False, 0
    for token in _TOKEN.finditer(data):
        hidden, beside = state
        word, brace = token["word"], token["brace"]
        if brace == b"{":
            stack.append(state)
        elif brace == b"}":
            state = stack.pop() if stack else state
        elif token["sign"] == b"*" or (word and word.decode() in destinations):
            state = (hidden, True)
        elif word == b"v":
            state = (token["number"] != b"0", beside)
        elif word == b"plain":
            state = (False, beside)
        elif hidden and (not word or word in _LETTERS):
            if not (is_inside or beside) and token[0].strip():
                is_inside = True
                runs += 1
            continue
        elif not (hidden or beside or word):
            is_inside = False
        pieces.append(token[0])
    omit("hidden", runs)
    return b"".join(pieces)
