"""Entities by rules alone: no weights, no dictionary of names, 1,000 passages a second and more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from builtin_plugins.graph_rag.extraction import numbers
from builtin_plugins.graph_rag.extraction.capitals import capitalized, subject
from builtin_plugins.graph_rag.extraction.caseless import CASELESS, caseless
from builtin_plugins.graph_rag.extraction.mentions import Mention, key_of
from builtin_plugins.graph_rag.extraction.quotes import bracketed, quoted
from builtin_plugins.graph_rag.extraction.spans import TextSpan, laid_over

_LONGEST_KEY = 120


def extract(text: str, *, language: str | None = None) -> list[Mention]:
    """The names in `text`, in order and without overlaps.

    Capitalized runs, acronyms, quotations, titles in brackets, dates, amounts, codes and web addresses; in
    scripts without capitals, what `caseless` finds. `language` (ISO 639), or else the text's own words,
    decides whether a capital means a name. Time is linear in the text.
    """
    german = None if language is None else language[:2].casefold() == "de"
    return list(_mentions(text, laid_over(_layers(text, german))))


def _layers(text: str, german: bool | None) -> Iterator[Iterable[TextSpan]]:
    if not text.isascii():
        yield bracketed(text)
    yield from numbers.layers(text)
    yield quoted(text)
    yield subject(text)
    yield capitalized(text, german=german)
    if not text.isascii() and CASELESS.search(text):
        yield caseless(text)


def _mentions(text: str, spans: Iterable[TextSpan]) -> Iterator[Mention]:
    for span in spans:
        written = text[span.start : span.end]
        key = span.key or key_of(written)
        if key and len(key) <= _LONGEST_KEY:
            yield Mention(span.start, span.end, written, key, span.label)
