"""Places found by one rule, before the rules are laid over one another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Span(NamedTuple):
    """A place in a text with what the rule knows of it; `key` only where it isn't `key_of` of the text."""

    start: int
    end: int
    label: str
    key: str = ""


def laid_over(layers: Iterable[Iterable[Span]]) -> list[Span]:
    """The spans of all layers in the order of the text; what an earlier layer holds, a later one can't."""
    kept: list[Span] = []
    for layer in layers:
        fresh = list(layer)
        kept = _merged(kept, fresh) if fresh else kept
    return kept


def _merged(kept: list[Span], fresh: list[Span]) -> list[Span]:
    """Both lists are in order; overlaps within `fresh` go to the first."""
    merged: list[Span] = []
    at = end = 0
    for span in fresh:
        while at < len(kept) and kept[at].end <= span.start:
            merged.append(kept[at])
            at += 1
        free = span.start >= end and (at == len(kept) or kept[at].start >= span.end)
        if free:
            merged.append(span)
            end = span.end
    merged += kept[at:]
    return merged
