"""Which characters the bytes of a text file mean, and reading them in bounded portions."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TextIO

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
# Those that people's files are in; the more there are to choose from, the worse the choice.
_CODE_PAGES: Final = (
    *("cp1252", "cp1251", "cp1250", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp874"),
    *("koi8_r", "cp932", "euc_jp", "gb18030", "big5", "cp949", "iso8859_2"),
)
_CENTRAL_EUROPE: Final = frozenset(
    {"Hungarian", "Polish", "Czech", "Slovak", "Slovene", "Croatian", "Romanian"}
)
_SAMPLE_BYTES: Final = 16_384
_ESCAPED: Final = re.compile("[\udc80-\udcff]+")
# Controls that no text has, in any number. C1 controls say nothing: converted text is full of them.
_C0: Final = re.compile("[\x00-\x08\x0e-\x1b\x7f]")
_MAX_C0: Final = 0.01


def read_head(path: Path) -> bytes:
    """Return the first `HEAD_BYTES` of the file."""
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)


def detect_encoding(head: bytes) -> str | None:
    """Return the Python codec of a text's first bytes, None when they are not text.

    A byte order mark decides; else UTF-8; else what charset-normalizer recognizes; else windows-1252. Many
    control characters below U+0020 mean that it isn't text.
    """
    for mark, codec in _MARKS:
        if head.startswith(mark):
            return codec if _is_text(decode_head(head, codec)) else None
    if (text := decode_head(head, "utf-8")) is not None:
        return "utf-8" if _is_text(text) else None
    if _C0.search(head.decode("latin-1")) and not _is_text(head.decode("latin-1")):
        return None
    recognized = _recognized(head)
    for codec in (recognized, "cp1252") if recognized else ("cp1252",):
        if _is_text(decode_head(head, codec)):
            return codec
    return None


def _recognized(head: bytes) -> str | None:
    """The code page of a text; Western European where the bytes leave it open.

    Only a tie of chaos and coherence is ours to decide: such texts read nearly alike in either code page.
    """
    # Imported on first use: neither the start nor most texts need it.
    from charset_normalizer import from_bytes

    matches = from_bytes(head[:_SAMPLE_BYTES], cp_isolation=list(_CODE_PAGES))
    best = matches.best()
    if best is None:
        return None
    equal = [one for one in matches if (one.chaos, one.coherence) == (best.chaos, best.coherence)]
    turkish = next((one for one in equal if one.language == "Turkish"), None)
    if turkish is not None:
        return turkish.encoding
    names = {name for one in equal for name in one.could_be_from_charset}
    if "cp1252" in names and best.language not in _CENTRAL_EUROPE:
        return "cp1252"
    return best.encoding


def decode_head(head: bytes, codec: str) -> str | None:
    """Decode the beginning of a file, whose last character may be cut in two; None when it is not `codec`."""
    try:
        return codecs.getincrementaldecoder(codec)().decode(head, final=len(head) < HEAD_BYTES)
    except UnicodeDecodeError:
        return None


def _is_text(text: str | None) -> bool:
    if text is None:
        return False
    return len(_C0.findall(text)) < _MAX_C0 * len(text) or not text


def open_text(path: Path, *, newline: str | None = None) -> TextIO:
    """Open a text file with the encoding that its head shows; pass what is read through `repair`."""
    codec = detect_encoding(read_head(path)) or "utf-8"
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
