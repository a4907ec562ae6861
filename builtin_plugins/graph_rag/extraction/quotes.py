"""Names in quotation marks, and in the brackets around titles in East Asian scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from builtin_plugins.graph_rag.extraction.mentions import NOUN_PHRASE
from builtin_plugins.graph_rag.extraction.spans import TextSpan

_MOST_WORDS = 10
_QUOTED = re.compile(
    r"""[“„](?P<curly>[^“”„"\n]{2,80})[”“]|"(?P<straight>[^"\n]{2,80})"|«\s?(?P<angle>[^«»\n]{2,80}?)\s?»"""
    r"""|‘(?P<single>[^‘’\n]{2,80})’(?!\w)|(?<!\w)'(?P<typed>[A-Z][^'\n]{1,60})'(?!\w)"""
)
_BRACKETED = re.compile(
    r"[《〈『](?P<title>[^《》〈〉『』\n]{1,60})[》〉』]|「(?P<named>[^「」\n]{1,40})」|【(?P<head>[^【】\n]{1,40})】"
)
_SPEECH = re.compile(r"[.!?。！？,，]")


def quoted(text: str) -> Iterator[TextSpan]:
    """Short quotations that could be a name; those that end with a period or a comma are speech."""
    for match in _QUOTED.finditer(text):
        kind = match.lastgroup or ""
        inner = match[kind]
        if len(inner.split()) <= _MOST_WORDS and any(map(str.isalpha, inner)) and not _is_speech(inner):
            label = "WORK_OF_ART" if _is_titled(inner) else NOUN_PHRASE
            yield TextSpan(match.start(kind), match.end(kind), label)


def bracketed(text: str) -> Iterator[TextSpan]:
    """《》〈〉『』 enclose titles; 「」【】 enclose names and words."""
    for match in _BRACKETED.finditer(text):
        kind = match.lastgroup or ""
        if kind == "title" or not _SPEECH.search(match[kind]):
            yield TextSpan(
                match.start(kind), match.end(kind), "WORK_OF_ART" if kind == "title" else NOUN_PHRASE
            )


def _is_speech(inner: str) -> bool:
    return len(inner.split()) > 4 and (inner[0].islower() or inner.rstrip()[-1] in ".!?")


def _is_titled(inner: str) -> bool:
    """Whether most longer words begin with a capital."""
    words = [word for word in inner.split() if len(word) > 3] or inner.split()
    return sum(word[0].isupper() for word in words) > 0.5 * len(words)
