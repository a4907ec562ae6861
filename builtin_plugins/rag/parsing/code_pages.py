"""Find the code page of a text that isn't UTF-8 and has no byte order mark, by chardet and by its words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from builtin_plugins.rag.parsing.cleaning import without_ansi

NOT_ASCII: Final = re.compile(rb"[\x80-\xff]+")
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
_FEW_LETTERS: Final = 18
"""With fewer letters, Russian is likelier than Greek or Hebrew, which use the same bytes."""
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


def code_page_of(sample: bytes) -> str | None:
    """The Python codec of the most plausible code page; None if none is plausible."""
    plain = without_ansi(sample.decode("latin-1")).encode("latin-1")
    sure = _plausible(plain, (*_MODERN, *_OLD))
    found = next(iter(sure), None)
    if found in _OLD:
        found = _old_or_modern(plain, sure, found)
    if found in _RARER_LATIN and _tells_little(plain, sure.get(found, 0.0), sure.get(_WESTERN, 0.0)):
        return _WESTERN
    # Where ISO 8859-2 has controls, its Windows cousin has quotation marks and dashes.
    return "cp1250" if found == _LATIN_2 and _C1.search(plain) else found


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
    if best in _LIKE_RUSSIAN and sum(map(len, NOT_ASCII.findall(names))) < _FEW_LETTERS:
        best = _DOS_RUSSIAN
    return best if _FOREIGN.search(names.decode(best, "replace")) else _DOS_US


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
    return sum(map(len, NOT_ASCII.findall(text))) < _TELLING and sure < max(_LEAST_SURE, _CLEARLY * western)


def _is_plausible(text: str) -> bool:
    """Whether non-Latin letters form words of their own, neither alone as in "2 캜" nor within Latin words as
    in "perchй".
    """
    if not _NOT_LATIN.search(text):
        return True
    words = _NOT_LATIN_WORD.findall(text)
    return bool(words) and 2 * len(_WITHIN_LATIN.findall(text)) <= len(words)
