"""Detect the encoding of a text file, and read it in bounded portions.

The code page of a text that isn't UTF-8 and has no byte order mark is found by chardet and by its words.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Final, TextIO

# ECMA-48: control sequences (colors; `tput` resets the character set before one), and commands to the
# terminal (titles, links).
_ANSI: Final = re.compile(
    "(?:\x1b\\(B)?\x1b\\[[0-?]*+[ -/]*+[@-~]|\x1b\\][^\x00-\x1f\x7f]*+(?:\x07|\x1b\\\\)"
)


def without_ansi(text: str) -> str:
    """Return text without the escape sequences with which programs color their terminal output."""
    return _ANSI.sub("", text) if "\x1b" in text else text


NOT_ASCII: Final = re.compile(rb"[\x80-\xff]+")
_EBCDIC_BLANK: Final = b"\x40"
# Letters, digits, blanks, the commonest punctuation, and line ends, alike in all of its code pages.
_EBCDIC_TEXT: Final = re.compile(
    rb"[\x81-\x89\x91-\x99\xa2-\xa9\xc1-\xc9\xd1-\xd9\xe2-\xe9\xf0-\xf9\x40\x4b\x6b\x5d\x4d\x60\x7a\x15\x25\x0d]"
)
_LEAST_BLANKS, _MOSTLY_TEXT = 0.03, 0.9
# Kana in EUC-JP and Shift JIS, two bytes each.
_KANA: Final = {
    "euc-jp": re.compile(rb"\xa4[\xa1-\xf3]|\xa5[\xa1-\xf6]"),
    "cp932": re.compile(rb"\x82[\x9f-\xf1]|\x83[\x40-\x96]"),
}
_LEAST_KANA, _KANA_SHARE = 5, 0.4
"""Different letters, as the commonest Korean ones have the same bytes, and the share of all kana."""
_WESTERN: Final = "cp1252"
_LATIN_2: Final = "iso8859-2"
# Code pages in common use; the more candidates, the worse the choice. MacCyrillic and ISO 8859-6 are too
# similar to windows-1251 and -1256 to be told apart in a short text.
_MODERN: Final = (
    *(_WESTERN, "cp1251", "cp1250", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp874"),
    *("koi8-r", "koi8-u", "iso8859-5", "cp932", "euc-jp", "gb18030", "big5", "cp949", _LATIN_2),
    *("cp866", "cp737", "cp862"),
)
_DOS_US, _DOS_WESTERN = "cp437", "cp850"
# MS-DOS and Macintosh have Latin letters where Windows has symbols.
_OLD: Final = (_DOS_US, _DOS_WESTERN, "cp852", "cp857", "mac-roman")
_DOS_RUSSIAN, _LIKE_RUSSIAN = "cp866", ("cp737", "cp862")
_FEW, _MANY = 12, 40
"""With few bytes beyond ASCII, neighbours tell more; with many, a script is hardly taken for another."""
_FEW_LETTERS: Final = 18
"""With fewer letters, Russian is likelier than Greek or Hebrew, which use the same bytes."""
_SCRIPTS: Final = {
    **dict.fromkeys(("cp1251", "koi8-r", "koi8-u", "iso8859-5", "cp866"), "Cyrillic"),
    **dict.fromkeys(("cp1253", "cp737"), "Greek"),
    **dict.fromkeys(("cp1255", "cp862"), "Hebrew"),
    **dict.fromkeys(("cp932", "euc-jp", "euc_jis_2004"), "Japanese"),
    "cp1256": "Arabic",
    "cp874": "Thai",
    "gb18030": "simplified",
    "big5": "traditional",
    "cp949": "Korean",
}
"""What is written in each code page that isn't for Latin letters."""
_LEAST_AHEAD: Final = 1.3
"""The least multiple of the confidence in any other script. Of 8,562 translated messages of 4 to 200
characters in 26 code pages, 7,569 are right and 182 in letters of another kind; this refuses 55 of these and
41 right ones (1.1: 36 and 20; 1.2: 43 and 29), most below 12 characters.
"""
_MOST_ASKED: Final = 20
_DECLARED: Final = re.compile(rb"charset|encoding", re.IGNORECASE)
_OF_NAMES: Final = (
    *(_DOS_US, _DOS_WESTERN, "cp852", _DOS_RUSSIAN, *_LIKE_RUSSIAN, "cp932", "gb18030", "big5", "cp949"),
)
# In a wrong code page, a Western name shows single letters of another script.
_FOREIGN: Final = re.compile(
    "[\u0370-\u03ff]{2}|[\u0400-\u04ff]{2}|[\u0590-\u05ff]{2}|[\u3040-\u30ff\u4e00-\u9fff]{2}|[\uac00-\ud7a3]{2}"
)
_RARER_LATIN: Final = frozenset({"cp1250", "cp1254", "cp1257", "cp1258", _LATIN_2})
_TELLING: Final = 3
_LEAST_SURE, _CLEARLY = 0.04, 1.5
"""With fewer non-ASCII bytes, a rarer code page needs this confidence, and this multiple of the Western."""
_SURER: Final = 1.03
_MANY_WORDS: Final = 12
"""With fewer words, an old code page needs this many times the confidence of a modern one."""
# A word with bytes beyond ASCII, unless the only one is a Windows apostrophe (92).
_TELLING_WORD: Final = re.compile(
    rb"(?<![A-Za-z])[A-Za-z]+(?!\x92)[\x80-\xff]+[A-Za-z]*|(?<![\x80-\xff])[\x80-\xff]++[A-Za-z]+"
)
_ODD: Final = re.compile(
    "(?<=[^\\W\\d_])(?:[^\\w\\s\x00-\x7f\u2019\xad\xb7](?=[^\\W\\d_])|[\u2022\u201a\u201e\u02c6])"
    "|[\ufffd\x80-\x9f]|(?<![\u2500-\u259f])[\u2552-\u256c](?![\u2500-\u259f])"
)
"""What real text never has: symbols inside words, bullets or opening quotes after them, lone box corners."""
_C1: Final = re.compile(rb"[\x80-\x9f]")
_OTHERS: Final = "\u0370-\u06ff\u0e00-\u0e7f\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff61-\uff9f"
_WORDY: Final = "\u0370-\u06ff\u0e00-\u0e7f"
_NOT_LATIN: Final = re.compile(f"[{_OTHERS}]")
_NOT_LATIN_WORD: Final = re.compile(f"[{_OTHERS}]{{2,}}")
_WITHIN_LATIN: Final = re.compile(f"(?<=[A-Za-z])[{_WORDY}]+|(?<![{_WORDY}])[{_WORDY}]++(?=[A-Za-z])")


def is_ebcdic(data: bytes) -> bool:
    """Whether bytes are text as mainframes write it, in which no byte is the ASCII letter that it looks like:
    a blank is 40, and letters and digits lie beyond 80.
    """
    blanks = data.count(_EBCDIC_BLANK)
    if blanks < _LEAST_BLANKS * len(data) or data.count(b" ") * 10 > blanks:
        return False
    return len(_EBCDIC_TEXT.findall(data)) > _MOSTLY_TEXT * len(data)


def code_page_of(sample: bytes) -> str | None:
    """The Python codec of the most plausible code page; None if none is plausible."""
    plain = without_ansi(sample.decode("latin-1")).encode("latin-1")
    if japanese := _japanese(plain):
        return japanese
    sure = _plausible(plain, (*_MODERN, *_OLD))
    codec = next(iter(sure), None)
    if codec in _OLD:
        codec = _old_or_modern(plain, sure, codec)
    if codec in _RARER_LATIN and _tells_little(plain, sure.get(codec, 0.0), sure.get(_WESTERN, 0.0)):
        return _WESTERN
    # Where ISO 8859-2 has controls, its Windows cousin has quotation marks and dashes.
    return "cp1250" if codec == _LATIN_2 and _C1.search(plain) else codec


def is_unsure(head: bytes) -> bool:
    """Whether a text's first bytes tell so little that letters of another script are nearly as likely."""
    sample = _sample(head)
    if _count_foreign(sample) >= _MANY or (codec := _code_page(head)) is None or _japanese(sample):
        return False
    sure = _plausible(sample, (*_MODERN, *_OLD))
    script = _SCRIPTS.get(codec)
    other = max((value for name, value in sure.items() if _SCRIPTS.get(name) != script), default=0.0)
    return sure.get(codec, 0.0) < other * (_LEAST_AHEAD if script else 1.0)


def shared_code_page(heads: Iterable[bytes]) -> str | None:
    """The code page of a script other than Latin that all of the texts have whose bytes suffice to tell."""
    long = (head for head in heads if not is_utf_8(head) and _count_foreign(_sample(head)) >= _MANY)
    codecs_found = set(islice(filter(None, map(_code_page, long)), _MOST_ASKED))
    return codecs_found.pop() if len(codecs_found) == 1 and not codecs_found.isdisjoint(_SCRIPTS) else None


def may_share(head: bytes, codec: str) -> bool:
    """Whether a text that tells little by itself, and declares nothing, makes sense in its neighbours' code
    page.
    """
    if (
        _code_page(head) in (None, codec)
        or _DECLARED.search(head)
        or (text := decode_head(head, codec)) is None
    ):
        return False
    return (_count_foreign(head) < _FEW or is_unsure(head)) and _is_plausible(text) and _is_text(text)


def _code_page(head: bytes) -> str | None:
    """The code page of a text, None if it is in Unicode or ISO 2022, or no text."""
    codec = None if is_utf_8(head) else detect_encoding(head)
    return None if codec is None or codec.startswith(("utf", "iso2022")) else codec


def _count_foreign(data: bytes) -> int:
    """How many bytes are not ASCII."""
    return sum(map(len, NOT_ASCII.findall(data)))


def code_page_of_names(names: bytes) -> str:
    """The Python codec of file names in an archive that doesn't name it: cp437, as the format prescribes,
    unless another code page, usually of MS-DOS, makes clearly more sense.
    """
    sure = _plausible(names, _OF_NAMES)
    best = next(iter(sure), _DOS_US)
    if best == _DOS_US and _oddness(names, _DOS_WESTERN) < _oddness(names, _DOS_US):
        return _DOS_WESTERN
    if best in _OLD:
        return best if _oddness(names, best) < _oddness(names, _DOS_US) else _DOS_US
    if best in _LIKE_RUSSIAN and _count_foreign(names) < _FEW_LETTERS:
        best = _DOS_RUSSIAN
    return best if _FOREIGN.search(names.decode(best, "replace")) else _DOS_US


def _japanese(text: bytes) -> str | None:
    """The codec of a text with much kana, which chardet takes for Cyrillic or Thai if it is short."""
    for codec, kana in _KANA.items():
        try:
            read = text.decode(codec)
        except UnicodeDecodeError:
            continue
        wide = [char for char in read if not char.isascii()]
        written = [char for char in wide if kana.fullmatch(char.encode(codec))]
        if len(set(written)) >= _LEAST_KANA and len(written) > _KANA_SHARE * len(wide):
            return codec
    return None


def _plausible(text: bytes, code_pages: Sequence[str]) -> dict[str, float]:
    """Chardet's confidence in each code page in which the text is plausible, the highest first."""
    # Imported on first use: startup and most texts don't need it, and its models take 30 MB.
    from chardet import detect_all

    ranked = detect_all(text, include_encodings=code_pages, compat_names=False, ignore_threshold=True)
    sure = {name: one["confidence"] for one in ranked if (name := one["encoding"])}
    return {name: value for name, value in sure.items() if _is_plausible(text.decode(name, "replace"))}


def _old_or_modern(text: bytes, sure: Mapping[str, float], old: str) -> str:
    """Choose an old code page only if the text is less odd in it than in the likeliest modern one, or equally
    odd with enough different words as evidence: one or two characters, however frequent, prove nothing.
    """
    if old == _DOS_US and _oddness(text, _DOS_WESTERN) < _oddness(text, _DOS_US):
        old = _DOS_WESTERN
    modern = next((name for name in sure if name not in _OLD), _WESTERN)
    here, there = _oddness(text, old), _oddness(text, modern)
    if here != there:
        return old if here < there else modern
    words = len(set(_TELLING_WORD.findall(text)))
    surer = sure.get(old, 0.0) >= _SURER * sure.get(modern, 0.0)
    return old if words >= _MANY_WORDS or (words >= _TELLING and surer) else modern


def _oddness(text: bytes, code_page: str) -> int:
    """Count what no real text contains, including a capital after a small letter unless both are ASCII."""
    read = text.decode(code_page, "replace")
    capitals = sum(a.islower() and b.isupper() and not (a + b).isascii() for a, b in pairwise(read))
    return len(_ODD.findall(read)) + capitals


def _tells_little(text: bytes, sure: float, western: float) -> bool:
    """Whether one or two accented letters don't suffice to decide: "Tromsø" and "Tromsų" are both names."""
    return _count_foreign(text) < _TELLING and sure < max(_LEAST_SURE, _CLEARLY * western)


def _is_plausible(text: str) -> bool:
    """Whether non-Latin letters form words of their own, neither alone as in "2 캜" nor within Latin words as
    in "perchй".
    """
    if not _NOT_LATIN.search(text):
        return True
    words = _NOT_LATIN_WORD.findall(text)
    return bool(words) and 2 * len(_WITHIN_LATIN.findall(text)) <= len(words)


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
    foreign = NOT_ASCII.search(data)
    return foreign.start() if foreign else 0


def _of_windows(error: UnicodeError) -> tuple[str, int]:
    """Characters such as ① and 髙, which Windows adds to ISO-2022-JP, in the places of its Shift JIS."""
    assert isinstance(error, UnicodeDecodeError)
    code_point = error.object[error.start : error.end]
    if len(code_point) != 2 or min(code_point) <= 0x20:
        return "\ufffd", error.end
    row, cell = code_point
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
    if is_ebcdic(head):
        return None
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
    return code_page_of(_sample(head))


def _sample(head: bytes) -> bytes:
    """The part that decides: what is near the first byte that is not ASCII."""
    start = max(0, _first_foreign(head) - _BEFORE_BYTES)
    return head[start : start + _SAMPLE_BYTES]


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
        return _ESCAPED.sub(lambda escaped: _as_windows_1252(escaped[0]), text)
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
