"""Questions whose answer requires counting what sentences list, or comparing what they say."""

from __future__ import annotations

import re
from collections.abc import Sequence

from builtin_plugins.rag.answering.candidate import Candidate
from builtin_plugins.rag.answering.expectations import (
    comparative,
    counted,
    has_value,
    needs_reckoning,
    states_count,
    superlative,
)
from builtin_plugins.rag.answering.logs import is_record
from builtin_plugins.rag.answering.words import content_stems, fold, found_in

_LEAST_LISTED = 3
"""The number of sentences that make a list to choose from: with two, only one may be about such a thing."""

_BY_CHANCE = 0.1
"""The share of a question by which similar entries may differ: Thai pairs of letters match by chance."""

_ALIKE = 0.3
"""The share of words that two such sentences have in common: a short one is mostly names and values."""


def leaves_reckoning(question: str, best: Candidate, found: Sequence[Candidate]) -> bool:
    """Whether the best sentence only helps to answer by counting or comparing it with others."""
    if _leaves_comparing(question, best, found):
        return True
    if _is_entry(best):
        entries = [one for one in found if _is_entry(one) and one.overlap >= best.overlap - _BY_CHANCE]
        return len(entries) > 1 and needs_reckoning(question)
    equal = [one for one in found if one.overlap >= best.overlap - 1e-9]
    return _leaves_counting(question, equal) or _leaves_choosing(question, equal)


def _is_entry(one: Candidate) -> bool:
    """Whether it is one entry of several in a table, list or log."""
    return one.is_row or is_record(one.text[one.headed :])


def _leaves_comparing(question: str, best: Candidate, found: Sequence[Candidate]) -> bool:
    """Whether the best sentence is about one of two compared things, and another sentence about the other."""
    degree = comparative(question)
    if degree is None or re.search(rf"(?<![a-z]){degree}(?![a-z])", fold(best.text)):
        return False
    lacking = [word for word in content_stems(question) if not found_in(word, best.stems)]
    return any(has_value(one.text) and any(found_in(word, one.stems) for word in lacking) for one in found)


def _leaves_counting(question: str, equal: Sequence[Candidate]) -> bool:
    """Whether the sentences are about the counted things one by one."""
    thing = counted(question) if len(equal) > 1 else None
    return thing is not None and not any(states_count(question, one.text, thing) for one in equal)


def _leaves_choosing(question: str, equal: Sequence[Candidate]) -> bool:
    """Whether sentences list things by name and value, and none says which is the extreme."""
    listed = [one for one in equal if _is_like(equal[0], one) and has_value(one.text)]
    most = superlative(question) if len(listed) >= _LEAST_LISTED else None
    return most is not None and not any(most in fold(one.text) for one in listed)


def _is_like(one: Candidate, other: Candidate) -> bool:
    return len(one.stems & other.stems) >= _ALIKE * len(one.stems | other.stems)
