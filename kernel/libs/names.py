"""Names that people read: of files, and of objects that users name."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import quote

from aiohttp import parse_content_disposition
from pydantic import AfterValidator

# Control characters, lone surrogates, line separators, and marks that change the writing direction:
# "invoice<mark>fdp.exe" would be shown as "invoiceexe.pdf".
_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\u202a-\u202e\u2066-\u2069]")
# What old browsers send: the path on the sender's machine, its backslashes as they are.
_FOLDERS = re.compile(r'(;\s*filename=")(?:[a-z]:|\\)\\(?:[^"\\]*\\)*(?=[^"\\]+")', re.IGNORECASE)
FORM_ENCODING = "_charset_"
"""The field in which a form names its encoding (RFC 7578); here all forms are UTF-8."""
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9._ ()-]")
_MARKS = re.compile(r"(?<=[A-Za-z])[\u0300-\u036f]+")
# Latin letters that don't decompose into a letter and a mark, in their common ASCII spelling: "ß" as "ss".
_OWN_LETTERS = (
    *("ßss", "ẞSS", "æae", "ÆAE", "œoe", "ŒOE", "þth", "ÞTh", "øo", "ØO", "łl", "ŁL", "đd", "ĐD", "ðd", "ÐD"),
    *("ıi", "ŋng", "ŊNG", "ħh", "ĦH"),
)
_LATIN = str.maketrans({pair[0]: pair[1:] for pair in _OWN_LETTERS})
_BLANK_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
_CONTROLS = ("Cc", "Cs", "Zl", "Zp")
_INVISIBLE = (*_CONTROLS, "Cf", "Mn", "Me", "Zs")


def clean_name(sent: str) -> str:
    """A file name without folders, control characters and direction marks, its letters and their marks
    composed (NFC; macOS parts them); at most 255 characters.
    """
    name = _UNFIT.sub("", sent.replace("\\", "/").rpartition("/")[2]).strip()
    name = unicodedata.normalize("NFC", name)
    return "document" if name in ("", ".", "..") else name[-255:]


def form_disposition(header: str | None) -> tuple[str | None, dict[str, str]]:
    """The kind and the parameters of a form field's Content-Disposition, as aiohttp parses it."""
    kind, parameters = parse_content_disposition(header and _FOLDERS.sub(r"\1", header))
    return kind, dict(parameters)


def content_disposition(filename: str) -> str:
    """The header that makes a browser save the response under this name (RFC 6266): the full name, and an
    ASCII form for older clients.
    """
    name = filename.replace("/", "_").replace("\\", "_")
    full = quote(name, safe="", errors="replace")
    return f"attachment; filename=\"{_in_ascii(name)}\"; filename*=UTF-8''{full}"


def _in_ascii(name: str) -> str:
    """The name in ASCII: Latin letters without their marks, `_` for every other character."""
    composed = _MARKS.sub("", unicodedata.normalize("NFC", name).translate(_LATIN))
    return _NOT_PLAIN.sub("_", "".join(char if char.isascii() else _bare(char) for char in composed))


def _bare(char: str) -> str:
    letter = _MARKS.sub("", unicodedata.normalize("NFKD", char))
    return letter if letter.isascii() else "_"


def _readable(name: str) -> str:
    """Check that a name is one line with something visible, in any script. Raises ValueError."""
    if any(unicodedata.category(character) in _CONTROLS for character in name):
        raise ValueError("a name is one line, without control characters")
    if not any(map(_visible, name)):
        raise ValueError("must have at least one visible character")
    return name


def _visible(character: str) -> bool:
    return unicodedata.category(character) not in _INVISIBLE and character not in _BLANK_LETTERS


READABLE = AfterValidator(_readable)
"""For a field's type: the name must be one line with something visible."""
