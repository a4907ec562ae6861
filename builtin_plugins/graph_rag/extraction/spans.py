"""Spans found by single rules, and merging them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class TextSpan(NamedTuple):
    """A place in a text and what the rule knows about it; `key` only if it differs from `key_of` the text."""

    start: int
    end: int
    label: str
    key: str = ""


def laid_over(layers: Iterable[Iterable[TextSpan]]) -> list[TextSpan]:
    """The spans of all layers in text order; earlier layers win over later ones."""
    spans: list[TextSpan] = []
    for layer in layers:
        fresh = list(layer)
        spans = _merged(spans, fresh) if fresh else spans
    return spans


def _merged(spans: list[TextSpan], fresh: list[TextSpan]) -> list[TextSpan]:
    """Merge two sorted lists; overlaps within `fresh` go to the first."""
    merged: list[TextSpan] = []
    at = end = 0
    for span in fresh:
        while at < len(spans) and spans[at].end <= span.start:
            merged.append(spans[at])
            at += 1
        free = span.start >= end and (at == len(spans) or spans[at].start >= span.end)
        if free:
            merged.append(span)
            end = span.end
    merged += spans[at:]
    return merged
