"""Detect the encoding of a text file, and read it in bounded portions."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TextIO

from builtin_plugins.rag.parsing.cleaning import without_ansi
from builtin_plugins.rag.parsing.code_pages import NOT_ASCII, code_page_of

HEAD_BYTES: Final = 65_536
"""How much of a file decides its kind and its encoding."""

# UTF-32 LE first: its mark begins with that of UTF-16 LE.
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# ISO 2022, whose bytes are all ASCII: long used for Japanese and Korean mail.
_SWITCHES: Final = (
    (b"\x1b$B", "iso2022_jp_ext"),
    (b"\x1b$@", "iso2022_jp_ext"),
    (b"\x1b$)C", "iso2022_kr"),
)
# Mailboxes mix these with other encodings.
_SWITCH: Final = re.compile(r"\x1b\$?[()]?[@-J]")
# These names often stand for the Windows code page that extends them (WHATWG Encoding).
_MEANT: Final = {
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}
_SAMPLE_BYTES: Final = 16_384
_BEFORE_BYTES: Final = 1_024
"""How much ASCII is kept before the part that decides."""
_ESCAPED: Final = re.compile("[\udc80-\udcff]+")
# Control characters that text never has in any number. C1 is left out: converted text is full of them.
_C0: Final = re.compile("[\x00-\x08\x0e-\x1b\x7f]")
_MAX_C0: Final = 0.01
_MAX_UNREAD: Final = 0.05
"""Of the characters of text in ISO 2022: spaces of a text that only mentions a switch are more."""
_LATIN_SHARE: Final = 0.7
"""Minimum share of a text's characters: the others may be dashes, quotes and foreign names."""


def read_head(path: Path) -> bytes:
    """Return the first `HEAD_BYTES` of the file."""
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)


def _encoding_of(path: Path) -> str | None:
    """The codec shown by the head, or by the first part that isn't ASCII if the head is."""
    head = read_head(path)
    if not head.isascii() or b"\0" in head or _switching(head):
        return detect_encoding(head)
    part = _first_part_beyond_ascii(path)
    return "utf-8" if _is_mostly_utf_8(part) else detect_encoding(part)


def _first_part_beyond_ascii(path: Path) -> bytes:
    with path.open("rb") as file:
        while (portion := file.read(HEAD_BYTES)).isascii() and portion:
            pass
        first = _first_foreign(portion)
        return portion[first:] + file.read(first)


def _is_mostly_utf_8(part: bytes) -> bool:
    """Whether at least half of what isn't ASCII is UTF-8; `repair` then handles the rest."""
    runs = NOT_ASCII.findall(part)
    return 2 * sum(is_utf_8(run) for run in runs) >= len(runs)


def is_utf_8(data: bytes) -> bool:
    """Whether all of it is UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def codec_meant(name: str, data: bytes) -> str:
    """The codec to use for text that declares this one. Raises `LookupError` for an unknown name.

    Many programs declare ISO 8859-1 or ASCII whatever they write, so such text is read as UTF-8 if it is
    valid UTF-8. So is text that declares UTF-16 but has since been converted, as its line ends have no zeros.
    """
    codec = codecs.lookup(name).name
    claims = codec in ("iso8859-1", "ascii") and not data.isascii()
    if (claims or (codec.startswith("utf-16") and b"\0" not in data)) and is_utf_8(data):
        return "utf-8"
    return _MEANT.get(codec, codec)


def _switching(head: bytes) -> str | None:
    """The ISO 2022 codec of a text that switches between character sets, else None."""
    return next((codec for switch, codec in _SWITCHES if switch in head), None)


def _first_foreign(data: bytes) -> int:
    """The offset of the first byte that is not ASCII."""
    found = NOT_ASCII.search(data)
    return found.start() if found else 0


def _of_windows(error: UnicodeError) -> tuple[str, int]:
    """Characters such as ① and 髙, which Windows adds to ISO-2022-JP, in the places of its Shift JIS."""
    assert isinstance(error, UnicodeDecodeError)
    found = error.object[error.start : error.end]
    if len(found) != 2 or min(found) <= 0x20:
        return "\ufffd", error.end
    row, cell = found
    lead = (row + 1) // 2 + (0x70 if row < 0x5F else 0xB0)
    trail = cell + (0x7E if row % 2 == 0 else 0x1F if cell < 0x60 else 0x20)
    return bytes((lead, trail)).decode("cp932", "replace"), error.end


codecs.register_error("iso-2022-of-windows", _of_windows)


def _errors_in(codec: str, otherwise: str) -> str:
    """How to decode bytes that are not of this codec."""
    return "iso-2022-of-windows" if codec.startswith("iso2022_jp") else otherwise


def _is_switching(head: bytes, codec: str) -> bool:
    """Whether this is text of an ISO 2022 codec, and not a program's text with such a switch in it."""
    text = decode_head(head, codec) if head.isascii() else None
    return text is not None and text.count("\ufffd") <= _MAX_UNREAD * len(text) and _is_text(text)


def detect_encoding(head: bytes) -> str | None:
    """Return the Python codec of a text's first bytes, None when they are not text.

    A byte order mark decides, then the escape sequences of ISO 2022, then the zeros of UTF-16 without a mark;
    else UTF-8, even if a few bytes are invalid; else what chardet recognizes; else windows-1252. Many control
    characters below U+0020 mean that it isn't text.
    """
    for mark, codec in _MARKS:
        if head.startswith(mark):
            return codec if _is_text(decode_head(head, codec)) else None
    if (switching := _switching(head)) and _is_switching(head, switching):
        return switching
    if (unmarked := _unmarked_utf_16(head)) is not None:
        return unmarked if _is_text(decode_head(head, unmarked)) else None
    if (text := decode_head(head, "utf-8")) is not None:
        return "utf-8" if _is_text(text) else None
    if _C0.search(head.decode("latin-1")) and not _is_text(head.decode("latin-1")):
        return None
    if _is_mostly_utf_8(head):
        return "utf-8"
    likely = _recognized(head)
    for codec in (likely, "cp1252") if likely else ("cp1252",):
        if _is_text(decode_head(head, codec)):
            return codec
    return None


def _unmarked_utf_16(head: bytes) -> str | None:
    """The codec of UTF-16 without a mark: in Latin script, exactly every other byte is zero."""
    first, second = head[::2].count(0), head[1::2].count(0)
    most, codec = (second, "utf-16-le") if first == 0 else (first, "utf-16-be")
    return codec if min(first, second) == 0 and most > _LATIN_SHARE * (len(head) // 2) else None


def _recognized(head: bytes) -> str | None:
    start = max(0, _first_foreign(head) - _BEFORE_BYTES)
    return code_page_of(head[start : start + _SAMPLE_BYTES])


def decoded_as(name: str, data: bytes) -> str:
    """Decode bytes by the declared character set, or by what they show if it is unknown or wrong."""
    try:
        return data.decode(codec_meant(name, data))
    except (LookupError, ValueError):
        codec = detect_encoding(data) or "cp1252"
        return data.decode(codec, _errors_in(codec, "replace"))


def decode_head(head: bytes, codec: str) -> str | None:
    """Decode the beginning of a file, whose last character may be cut off; None if it isn't in `codec`."""
    try:
        decoder = codecs.getincrementaldecoder(codec)(_errors_in(codec, "strict"))
        return decoder.decode(head, final=len(head) < HEAD_BYTES)
    except UnicodeDecodeError:
        return None


def _is_text(text: str | None) -> bool:
    if text is None:
        return False
    text = _SWITCH.sub("", without_ansi(text))
    return len(_C0.findall(text)) < _MAX_C0 * len(text) or not text


def open_text(path: Path, *, newline: str | None = None) -> TextIO:
    """Open a text file in its detected encoding; pass what is read through `repair`."""
    codec = _encoding_of(path) or "utf-8"
    errors = _errors_in(codec, "surrogateescape" if codec.startswith("utf-8") else "replace")
    return path.open(encoding=codec, errors=errors, newline=newline)


def repair(text: str) -> str:
    """Read the invalid bytes of a UTF-8 file as windows-1252: mixed files are common."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _ESCAPED.sub(lambda found: _as_windows_1252(found[0]), text)
    return text


def _as_windows_1252(escaped: str) -> str:
    return escaped.encode("utf-8", "surrogateescape").decode("cp1252", "replace")


def read_portions(path: Path, chars: int) -> Iterator[str]:
    """Yield the text of a file in portions of at most `chars` characters, line breaks as newlines."""
    with open_text(path) as file:
        while portion := file.read(chars):
            yield repair(portion)


def read_lines(path: Path, max_chars: int) -> Iterator[str]:
    """Yield the lines of a file without line breaks; one longer than `max_chars` comes in several parts."""
    with open_text(path) as file:
        while line := file.readline(max_chars):
            yield repair(line.removesuffix("\n"))
