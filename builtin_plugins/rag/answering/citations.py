"""Citations ``[n]`` in a generated answer: finds and checks them, and drops invented ones."""

from __future__ import annotations

import re

from builtin_plugins.documents.api import is_closed

_OPEN, _CLOSE = r"\[【", r"\]】"
_LIST = r"\d{1,4}(?:\s*[,;–-]\s*\d{1,4})*"
_CITATION = re.compile(rf"[^\S\n]{{0,8}}[{_OPEN}]\s*({_LIST})\s*[{_CLOSE}]")
_UNFINISHED = re.compile(rf"[^\S\n]{{0,8}}(?:[{_OPEN}][\d\s,;–-]{{0,60}})?\Z")
_RANGE = re.compile(r"(?<!\d)(\d++)\s*[–-]\s*(\d+)")
_NUMBER = re.compile(r"\d+")
_INNER_CITATION = re.compile(r"\[(\d+(?:\s*[,;–-]\s*\d+)*)\]")


class CitationFilter:
    """Passes text through ``feed`` in pieces, dropping invalid citations; ``cited`` grows with it.

    ``[1, 2]``, ``[1-2]`` and ``【1】`` come out as ``[1][2]`` and ``[1]``. A possible beginning of a citation
    is held back until the next piece. ``[0]`` is not a citation and stays, as it is common in code.
    """

    def __init__(self, passages: int) -> None:
        self._passages = passages
        self._pending = ""
        self._cited: set[int] = set()

    @property
    def cited(self) -> tuple[int, ...]:
        """1-based positions of the passages cited so far, ascending."""
        return tuple(sorted(self._cited))

    def feed(self, piece: str) -> str:
        """What can be shown after this piece; may be empty."""
        text = self._pending + piece
        unfinished = _UNFINISHED.search(text)
        cut = unfinished.start() if unfinished else len(text)
        self._pending = text[cut:]
        return self._checked(text[:cut])

    def close(self) -> str:
        """The held-back text, at the end of the answer."""
        rest, self._pending = self._pending, ""
        return self._checked(rest)

    def _checked(self, text: str) -> str:
        return _CITATION.sub(self._replace, text)

    def _replace(self, match: re.Match[str]) -> str:
        numbers = _numbers(match.group(1), self._passages)
        if numbers == [0]:
            return match.group()
        true = [number for number in numbers if 1 <= number <= self._passages]
        self._cited.update(true)
        space = match.group()[: len(match.group()) - len(match.group().lstrip())]
        return space + "".join(f"[{number}]" for number in true) if true else ""


def check_citations(text: str, passages: int) -> tuple[str, tuple[int, ...]]:
    """A whole answer without citations beyond ``passages``, and the cited positions."""
    through = CitationFilter(passages)
    checked = through.feed(text) + through.close()
    return checked, through.cited


def quoted(text: str) -> str:
    """A quotation as part of an answer, with a closing mark.

    The document's own bracketed numbers are put in parentheses, so they are not mistaken for our citations.
    """
    plain = _INNER_CITATION.sub(r"(\1)", text).rstrip(" ,;:")
    return plain if is_closed(plain) else f"{plain}."


def without_citations(text: str) -> str:
    """The text without its citations."""
    return check_citations(text, 0)[0]


def _numbers(inside: str, passages: int) -> list[int]:
    """The numbers in one bracket, each once; ranges are expanded as far as there are passages."""
    spelled = _RANGE.sub(lambda match: _spelled(int(match[1]), int(match[2]), passages), inside)
    return list(dict.fromkeys(int(number) for number in _NUMBER.findall(spelled)))


def _spelled(first: int, last: int, passages: int) -> str:
    return ",".join(str(number) for number in range(first, min(last, passages) + 1)) or str(first)
