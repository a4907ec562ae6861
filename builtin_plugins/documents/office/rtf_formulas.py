"""Office Math in RTF, as a line of text: its groups are named like elements of Office Open XML."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from builtin_plugins.documents.markup.formulas import Formula
from builtin_plugins.documents.office.rtf_groups import groups

_FORMULA: Final = re.compile(rb"\s{0,4}(?:\\\*\s{0,4})?\\moMath(?![A-Za-z])")
# What would hide the formula from the converter.
_AROUND: Final = re.compile(rb"(?<!\\)\\(?:\*\s{0,4}\\moMathPara|mmath)(?![A-Za-z]) ?")
_TOKEN: Final = re.compile(
    rb"\\([A-Za-z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^A-Za-z])|([{}])|[\r\n]+|([^\\{}\r\n]+)"
)
_VALUES: Final = frozenset({"begChr", "endChr", "sepChr", "chr", "type", "pos"})
_CODE_PAGE: Final = "cp1252"
_DEEPEST: Final = 100
_STYLED: Final = re.compile("[\U0001d400-\U0001d7ff]")  # italic letters and the like


class _Group(NamedTuple):
    """A group: its name without the prefix, empty for one of formatting, and its texts and groups."""

    name: str
    parts: list[_Part]


_Part: TypeAlias = "str | _Group"


def with_formulas(data: bytes) -> bytes:
    """The file with each formula as text in its place."""
    if b"\\moMath" not in data:
        return data
    pieces: list[bytes] = []
    place = 0
    for start, end in groups(data, lambda at: _FORMULA.match(data, at) is not None):
        pieces += [data[place:start], b"{\\uc0 ", _written(_formula(data[start + 1 : end - 1])), b"}"]
        place = end
    return _AROUND.sub(b"", b"".join([*pieces, data[place:]]))


def _formula(content: bytes) -> str:
    formula = Formula()
    _tell(formula, _tree(content).parts)
    return formula.text


def _tell(formula: Formula, parts: Sequence[_Part]) -> None:
    for part in parts:
        if isinstance(part, str):
            formula.data(part)
        elif part.name in _VALUES:
            formula.start(part.name, {"val": _text(part)})
            formula.end()
        elif part.name.endswith("Pr"):
            formula.start(part.name, {})
            _tell(formula, [one for one in part.parts if isinstance(one, _Group)])
            formula.end()
        elif part.name:
            formula.start(part.name, {})
            _tell(formula, part.parts)
            formula.end()
        else:
            _tell(formula, part.parts)


def _text(group: _Group) -> str:
    return "".join(one for one in group.parts if isinstance(one, str)).strip()


def _tree(content: bytes) -> _Group:
    """The groups of a formula; those nested too deeply are left out."""
    top = _Group("", [])
    open_groups, too_deep = [top], 0
    for token in _tokens(content):
        within = open_groups[-1]
        if token == "{":
            too_deep += len(open_groups) > _DEEPEST
            open_groups += [] if too_deep else [_Group("", [])]
        elif token == "}":
            if too_deep:
                too_deep -= 1
            elif len(open_groups) > 1:
                open_groups.pop()
                open_groups[-1].parts.append(within)
        elif too_deep:
            continue
        elif token.startswith("\\"):
            if token[1:2] == "m" and not within.name and not within.parts and token != "\\moMath":
                open_groups[-1] = _Group(token[2:], within.parts)
        else:
            within.parts.append(token[1:])
    return top


def _tokens(content: bytes) -> Iterator[str]:
    """Braces, control words after a backslash, and texts after a space."""
    skipped, written, left = 1, [], 0
    for token in _TOKEN.finditer(content):
        word, number, code, sign, brace, text = token.groups()
        letter = ""
        if word == b"u" and number:
            written.append(int(number) & 0xFFFF)
            left = skipped
            continue
        if code or text or sign:
            letter = _decoded(code, sign, text)
            letter, left = letter[left:], max(0, left - len(letter))
            if not letter:
                continue
        if written:
            yield " " + _letters(written)
            written = []
        left = 0
        if letter:
            yield " " + letter
        elif brace:
            yield brace.decode()
        elif word == b"uc" and number:
            skipped = int(number)
        elif word:
            yield "\\" + word.decode()
    if written:
        yield " " + _letters(written)


def _decoded(code: bytes | None, sign: bytes | None, text: bytes | None) -> str:
    if code:
        return bytes.fromhex(code.decode()).decode(_CODE_PAGE, "replace")
    if sign:
        return sign.decode("latin-1") if sign in b"\\{}" else ""
    return (text or b"").decode(_CODE_PAGE, "replace")


def _letters(codes: Sequence[int]) -> str:
    """Letters from the numbers of UTF-16, those in styles of mathematics without their style."""
    text = b"".join(code.to_bytes(2, "little") for code in codes).decode("utf-16-le", "replace")
    return _STYLED.sub(lambda styled: unicodedata.normalize("NFKC", styled[0]), text)


def _written(text: str) -> bytes:
    """A text as RTF that needs no code page."""
    data = f" {text} ".encode("utf-16-le")
    codes = (int.from_bytes(data[at : at + 2], "little", signed=True) for at in range(0, len(data), 2))
    return b"".join(
        b"%c" % code if chr(code & 0xFFFF).isascii() and chr(code).isalnum() else b"\\u%d " % code
        for code in codes
    )
