"""Questions that sentences leave to their reader: to count what they list, or to compare what they tell."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_plugins.rag.answering.candidate import Candidate
from builtin_plugins.rag.answering.comparing import leaves_comparing
from builtin_plugins.rag.answering.expectations import counted, has_quantity, needs_reckoning
from builtin_plugins.rag.answering.passages import Passage


def leaves_reckoning(
    question: str, best: Candidate, found: Sequence[Candidate], passages: Sequence[Passage]
) -> bool:
    """Whether the best sentence answers the question only to who counts or compares it with others."""
    if leaves_comparing(question, best, passages):
        return True
    equal = [one for one in found if one.overlap >= best.overlap - 1e-9]
    if best.is_row:
        return sum(one.is_row for one in equal) > 1 and needs_reckoning(question)
    return len(equal) > 1 and _leaves_counting(question, equal)


def _leaves_counting(question: str, equal: Sequence[Candidate]) -> bool:
    """Whether the sentences are what is asked the number of, one by one. Number words are known in a few
    languages of Latin script alone.
    """
    thing = counted(question)
    if thing is None or not thing.isascii():
        return False
    return not any(has_quantity(one.text, of=thing) for one in equal)
