"""Names that people read: of files, and of whatever somebody makes."""

from __future__ import annotations

import re
import unicodedata

from pydantic import AfterValidator

# Control characters, halves of characters, line separators, and marks that turn the direction of writing:
# "invoice<turn>fdp.exe" would be shown as "invoiceexe.pdf".
_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_BLANK_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
_CONTROLS = ("Cc", "Cs", "Zl", "Zp")
_INVISIBLE = (*_CONTROLS, "Cf", "Mn", "Me", "Zs")


def clean_name(sent: str) -> str:
    """A file name without folders, control characters and turns of direction, at most 255 characters."""
    name = _UNFIT.sub("", sent.replace("\\", "/").rpartition("/")[2]).strip()
    return "document" if name in ("", ".", "..") else name[-255:]


def _readable(name: str) -> str:
    """One line in any script, with any mark of direction, and with something to see. Raises ValueError."""
    if any(unicodedata.category(character) in _CONTROLS for character in name):
        raise ValueError("a name is one line, without control characters")
    if not any(map(_visible, name)):
        raise ValueError("must have at least one visible character")
    return name


def _visible(character: str) -> bool:
    return unicodedata.category(character) not in _INVISIBLE and character not in _BLANK_LETTERS


READABLE = AfterValidator(_readable)
"""For the type of a field: the name is one line with something to see."""
