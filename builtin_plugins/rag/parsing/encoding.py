"""Which characters the bytes of a text file mean, and reading them in bounded portions."""

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

# UTF-32 LE begins with the mark of UTF-16 LE, so it is looked for first.
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# ISO 2022, all of whose bytes are ASCII: Japanese and Korean mail was long written so.
_SWITCHES: Final = (
    (b"\x1b$B", "iso2022_jp_ext"),
    (b"\x1b$@", "iso2022_jp_ext"),
    (b"\x1b$)C", "iso2022_kr"),
)
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
# Controls that no text has, in any number. C1 controls say nothing: converted text is full of them.
_C0: Final = re.compile("[\x00-\x08\x0e-\x1b\x7f]")
_MAX_C0: Final = 0.01
_LATIN_SHARE: Final = 0.7
"""Of the characters of a text: the others may be dashes, quotes and foreign names."""


def read_head(path: Path) -> bytes:
    """Return the first `HEAD_BYTES` of the file."""
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)


def _encoding_of(path: Path) -> str | None:
    """The codec that the head shows; where that is all ASCII, the first part that is not."""
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
    """Whether at least half of what isn't ASCII is UTF-8: the rest is then for `repair`."""
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

    Programs that don't know name ISO 8859-1 or ASCII, whatever they write: where it is UTF-8, it is read so.
    So is what declares UTF-16 and has been converted since, without the zeros of its line ends.
    """
    codec = codecs.lookup(name).name
    claims = codec in ("iso8859-1", "ascii") and not data.isascii()
    if (claims or (codec.startswith("utf-16") and b"\0" not in data)) and is_utf_8(data):
        return "utf-8"
    return _MEANT.get(codec, codec)


def _switching(head: bytes) -> str | None:
    """The codec of text that switches between character sets, if this does."""
    return next((codec for switch, codec in _SWITCHES if switch in head), None)


def _first_foreign(data: bytes) -> int:
    """The place of the first byte that is not ASCII."""
    found = NOT_ASCII.search(data)
    return found.start() if found else 0


def detect_encoding(head: bytes) -> str | None:
    """Return the Python codec of a text's first bytes, None when they are not text.

    A byte order mark decides, the switches of ISO 2022, or the zeros of UTF-16 without a mark; else UTF-8,
    also where a few bytes are not; else what chardet recognizes; else windows-1252. Many control characters
    below U+0020 mean that it isn't text.
    """
    for mark, codec in _MARKS:
        if head.startswith(mark):
            return codec if _is_text(decode_head(head, codec)) else None
    if (switching := _switching(head)) and _is_text(decode_head(head, switching)):
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
    """The codec of UTF-16 without a mark: in Latin script, every other byte is zero, and no other one is."""
    first, second = head[::2].count(0), head[1::2].count(0)
    most, codec = (second, "utf-16-le") if first == 0 else (first, "utf-16-be")
    return codec if min(first, second) == 0 and most > _LATIN_SHARE * (len(head) // 2) else None


def _recognized(head: bytes) -> str | None:
    start = max(0, _first_foreign(head) - _BEFORE_BYTES)
    return code_page_of(head[start : start + _SAMPLE_BYTES])


def decoded_as(name: str, data: bytes) -> str:
    """Bytes that declare a character set; one that is unknown or wrong gives way to what they show."""
    try:
        return data.decode(codec_meant(name, data))
    except (LookupError, ValueError):
        return data.decode(detect_encoding(data) or "cp1252", "replace")


def decode_head(head: bytes, codec: str) -> str | None:
    """Decode the beginning of a file, whose last character may be cut in two; None when it is not `codec`."""
    try:
        return codecs.getincrementaldecoder(codec)().decode(head, final=len(head) < HEAD_BYTES)
    except UnicodeDecodeError:
        return None


def _is_text(text: str | None) -> bool:
    if text is None:
        return False
    text = without_ansi(text)
    return len(_C0.findall(text)) < _MAX_C0 * len(text) or not text


def open_text(path: Path, *, newline: str | None = None) -> TextIO:
    """Open a text file with the encoding that its bytes show; pass what is read through `repair`."""
    codec = _encoding_of(path) or "utf-8"
    errors = "surrogateescape" if codec.startswith("utf-8") else "replace"
    return path.open(encoding=codec, errors=errors, newline=newline)


def repair(text: str) -> str:
    """Read bytes that are not UTF-8, in a file that is otherwise, as windows-1252: mixed files are common."""
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
    """Yield the lines of a file without their ends; a longer line than `max_chars` comes in several parts."""
    with open_text(path) as file:
        while line := file.readline(max_chars):
            yield repair(line.removesuffix("\n"))
