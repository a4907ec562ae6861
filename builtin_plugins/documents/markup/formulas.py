"""Formulas in one line of text, such as x = (-b±√(b^2-4ac))/(2a): MathML and Office Math.

MathML Core; ECMA-376-1, 22.1. Both put the same operands in the same order, so one table reads both.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from lxml import etree

_DEEPEST: Final = 100
_TOKENS: Final = frozenset({"mi", "mn", "mo", "mtext", "ms"})
_ROWS: Final = frozenset({"msqrt"})  # several elements are one operand
_RUNS: Final = frozenset({"r", "t"})  # of Office, which may end anywhere in a word or a number
_UNSEEN: Final = frozenset({"annotation", "annotation-xml", "mphantom", "instrText", "del", "moveFrom"})
_PROPERTIES: Final = "Pr"
_VALUES: Final = frozenset({"begChr", "endChr", "sepChr", "chr", "type", "pos"})
_INVISIBLE: Final = re.compile("[\u2061-\u2064\u200b]")
# What needs no parentheses as an operand: a number, a word, a sign, or what has them already.
_OPERAND: Final = re.compile(r"[-+\u2212]?(?:\d[\d.,]*|[^\W\d_][\w.,]*)|[^\w\s]|\([^()]*\)|")
_WORD_ENDS: Final = re.compile(r"[^\W\d_]{2}$")
_WORD_BEGINS: Final = re.compile(r"[^\W\d_]{2}")
_SCRIPT_ENDS: Final = re.compile(r"[_^][-+\u2212]?[^\W_]+$")
_LONGEST_SCRIPT: Final = 20
_RELATION: Final = re.compile("[=<>≤≥≠≈≡∼]")
_BIG: Final = frozenset("∑∏∐∫∬∭∮⋃⋂⨁⨂⋁⋀")
_RAISED_SIGNS: Final = re.compile("[′″‴°∘']+")
# Drawn above a letter, by the character that says so.
_ACCENTS: Final = {
    **dict.fromkeys("^ˆ\u0302", "\u0302"),
    **dict.fromkeys("~˜\u0303", "\u0303"),
    **dict.fromkeys("¯‾ˉ_\u0304\u0305", "\u0304"),
    **dict.fromkeys("→⃗\u20d7", "\u20d7"),
    **dict.fromkeys(".˙\u0307", "\u0307"),
    **dict.fromkeys("¨\u0308", "\u0308"),
    **dict.fromkeys("´\u0301", "\u0301"),
    **dict.fromkeys("`\u0300", "\u0300"),
}


class _Part(NamedTuple):
    name: str
    text: str


@dataclass
class _Open:
    """An element that is being read: its finished parts, and what its properties say."""

    name: str
    values: dict[str, str] = field(default_factory=dict)
    parts: list[_Part] = field(default_factory=list)


class Formula:
    """Takes the elements of a formula as they open and close, without their prefixes."""

    def __init__(self) -> None:
        self._open = [_Open("")]
        self._too_deep = 0

    def start(self, name: str, values: Mapping[str, str | None]) -> None:
        """An element opens."""
        if len(self._open) > _DEEPEST:
            self._too_deep += 1
        else:
            self._open.append(_Open(name, {key: value or "" for key, value in values.items()}))

    def data(self, text: str) -> None:
        """Text between two tags; it may come in several calls."""
        within = self._open[-1]
        if within.name != "t":
            text = " ".join(_INVISIBLE.sub("", text).split())
        if text:
            within.parts.append(_Part("t", text))

    def end(self) -> None:
        """The last opened element closes."""
        if self._too_deep:
            self._too_deep -= 1
            return
        closed, within = self._open.pop(), self._open[-1]
        if closed.name in _VALUES:
            within.values[closed.name] = closed.values.get("val", "")
        elif closed.name.endswith(_PROPERTIES):
            within.values |= closed.values
        elif closed.name not in _UNSEEN:
            write = _WRITERS.get(closed.name)
            texts = [_joined(closed)] if closed.name in _ROWS else [part.text for part in closed.parts]
            within.parts.append(_Part(closed.name, write(texts, closed.values) if write else _joined(closed)))

    @property
    def is_complete(self) -> bool:
        """Whether everything that opened has closed."""
        return len(self._open) == 1

    @property
    def text(self) -> str:
        """What has been read."""
        return " ".join(_joined(self._open[0]).split())


def formula_in(root: etree._Element) -> str:
    """The formula in an element."""
    formula = Formula()
    for event, element in etree.iterwalk(root, ("start", "end"), tag="{*}*"):
        if event == "end":
            formula.end()
        else:
            names = {str(name).rpartition("}")[2]: str(value) for name, value in element.items()}
            formula.start(element.tag.rpartition("}")[2], names)
            formula.data(element.text or "")
    return formula.text


def placed(formula: str, before: str) -> str:
    """A formula as it follows some text: two and a half is not 21/2."""
    return f" {formula}" if before[-1:].isdigit() and formula[:1].isdigit() else formula


def _joined(element: _Open) -> str:
    """The parts side by side, apart where a number, a word or an index would get longer: sin x, a_i b."""
    if element.name in _TOKENS:
        return " ".join(part.text for part in element.parts)
    written: list[str] = []
    before = _Part("", "")
    for part in element.parts:
        if part.text:
            written += [" ", part.text] if _is_apart(before, part) else [part.text]
            before = part
    return "".join(written)


def _is_apart(before: _Part, after: _Part) -> bool:
    last, first = before.text[-1:], after.text[:1]
    if not (last.isalnum() and first.isalnum()) or {before.name, after.name} <= _RUNS:
        return False
    if (last.isdigit() and first.isdigit()) or _SCRIPT_ENDS.search(before.text[-_LONGEST_SCRIPT:]):
        return True
    words = _WORD_ENDS.search(before.text) or _WORD_BEGINS.match(after.text)
    return words is not None and not {before.name, after.name} & _RUNS


def _operand(text: str) -> str:
    return text if _OPERAND.fullmatch(text) else f"({text})"


def _at(texts: Sequence[str], place: int) -> str:
    return texts[place] if place < len(texts) else ""


def _with_scripts(base: str, below: str = "", above: str = "") -> str:
    """x1, x_i, x^2; an operator such as a sum, and a name such as lim, are kept apart from what follows."""
    text = base
    if below:
        text += below if base[-1:].isalpha() and below.isdecimal() else f"_{_operand(below)}"
    if above:
        text += above.replace("∘", "°") if _RAISED_SIGNS.fullmatch(above) else f"^{_operand(above)}"
    return f"{text} " if base in _BIG or (text != base and len(base) > 1 and base.isalpha()) else text


def _raised(base: str, above: str) -> str:
    return _with_scripts(base, above=above)


def _before(below: str, above: str, base: str) -> str:
    return _with_scripts("", below, above) + base


def _accented(base: str, mark: str) -> str:
    """A letter with its accent; a line above a whole term is not shown."""
    return unicodedata.normalize("NFC", base + _ACCENTS[mark]) if mark and len(base) == 1 else base


def _over(texts: Sequence[str], _: Mapping[str, str]) -> str:
    base, above = _at(texts, 0), _at(texts, 1)
    return _accented(base, above) if above in _ACCENTS else _raised(base, above)


def _under(texts: Sequence[str], _: Mapping[str, str]) -> str:
    base, below = _at(texts, 0), _at(texts, 1)
    return base if below in _ACCENTS else _with_scripts(base, below)


def _accent(texts: Sequence[str], values: Mapping[str, str]) -> str:
    mark = values.get("chr", "\u0302")
    return _accented(_at(texts, 0), mark if mark in _ACCENTS else "")


def _bar(texts: Sequence[str], values: Mapping[str, str]) -> str:
    return _accented(_at(texts, 0), "¯" if values.get("pos") == "top" else "")


def _fraction(texts: Sequence[str], values: Mapping[str, str]) -> str:
    """In one line: one half is not 12. Without its line it is a pair, as in a binomial coefficient."""
    is_pair = values.get("type") == "noBar" or values.get("linethickness", "")[:1] == "0"
    return (" over " if is_pair else "/").join(map(_operand, (_at(texts, 0), _at(texts, 1))))


def _root(base: str, degree: str = "") -> str:
    return f"{_operand(base)}^(1/{_operand(degree)})" if degree else f"√{_operand(base)}"


def _big(texts: Sequence[str], values: Mapping[str, str]) -> str:
    sign = _with_scripts(values.get("chr") or "∫", _at(texts, 0), _at(texts, 1))
    return f"{sign.rstrip()} {_at(texts, 2)}"


def _function(texts: Sequence[str], _: Mapping[str, str]) -> str:
    name, argument = _at(texts, 0).rstrip(), _at(texts, 1)
    return name + ("" if argument.startswith("(") else " ") + argument


def _fenced(texts: Sequence[str], begin: str, end: str, separator: str) -> str:
    return begin + separator.join(texts) + end


def _row(texts: Sequence[str], _: Mapping[str, str]) -> str:
    """Cells of a matrix, or both sides of an equation."""
    row = ""
    for cell in texts:
        row += f"{' ' if _RELATION.match(cell) else ', '}{cell}" if row and cell else cell
    return row


def _rows(texts: Sequence[str], _: Mapping[str, str]) -> str:
    return "; ".join(text.replace("&", "") for text in texts if text)


def _named(read: Callable[..., str], *places: int) -> Callable[[Sequence[str], Mapping[str, str]], str]:
    return lambda texts, _: read(*(_at(texts, place) for place in places))


_WRITERS: Final[dict[str, Callable[[Sequence[str], Mapping[str, str]], str]]] = {
    "semantics": _named(str, 0),
    "maction": _named(str, 0),
    "mspace": lambda _, __: " ",
    **dict.fromkeys(("mfrac", "f"), _fraction),
    "msqrt": _named(_root, 0),
    "mroot": _named(_root, 0, 1),
    "rad": _named(_root, 1, 0),
    **dict.fromkeys(("msub", "sSub"), _named(_with_scripts, 0, 1)),
    **dict.fromkeys(("msubsup", "sSubSup", "munderover"), _named(_with_scripts, 0, 1, 2)),
    **dict.fromkeys(("msup", "sSup"), _named(_raised, 0, 1)),
    "sPre": _named(_before, 0, 1, 2),
    **dict.fromkeys(("mover", "limUpp"), _over),
    **dict.fromkeys(("munder", "limLow"), _under),
    "acc": _accent,
    "bar": _bar,
    "nary": _big,
    "func": _function,
    "d": lambda texts, v: _fenced(texts, v.get("begChr", "("), v.get("endChr", ")"), v.get("sepChr", "|")),
    "mfenced": lambda texts, v: _fenced(texts, v.get("open", "("), v.get("close", ")"), ", "),
    **dict.fromkeys(("mtr", "mr"), _row),
    **dict.fromkeys(("mtable", "m", "eqArr"), _rows),
}
