"""What tells a right answer from a wrong one: how near its sentence and its passage are to the question, how
they stand among the others, and what of the question is nowhere to be found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from builtin_plugins.rag.answering.candidate import Candidate
from builtin_plugins.rag.answering.passages import Passage
from builtin_plugins.rag.answering.support import Coverage

_MOST_MARGIN = 4.0
_ALONE = 0.3  # how far ahead a passage counts that is the only one


@dataclass(frozen=True, slots=True)
class Signs:
    """Of the best sentence, its passage ("home") and the passages around; mostly 0..1, larger is better.

    `similarity` is the sentence's, `ahead` how far it lies above the mean of the sentences weighed, `margin`
    its lead in worth over the next, `apart` that over the best of another passage. `near` is the home's
    similarity, `matched` its share of a full match by words, each with its lead over the best of the others.
    `agreed` is 1 where both legs put the home first. `joined` and `overlap` are shares of the question's
    words in the sentence, with and without what stands before it, `coverage` that in the home. `unnamed` is
    the share of its names, codes and numbers that no passage has, `home_unnamed` that the home lacks. `fit`
    and `unfit` tell whether the sentence has the kind of thing that is asked for; both are 0 for any kind.
    `foreign` is above 0 where question and home are in different languages, as far as their words don't match
    all the same.
    """

    similarity: float
    ahead: float
    margin: float
    apart: float
    near: float
    near_lead: float
    matched: float
    matched_lead: float
    agreed: float
    rank: float
    joined: float
    overlap: float
    coverage: float
    unnamed: float
    home_unnamed: float
    fit: float
    unfit: float
    row: float
    brief: float
    foreign: float

    @classmethod
    def read(
        cls,
        covered: Coverage,
        passages: Sequence[Passage],
        found: Sequence[Candidate],
        similarities: Sequence[float],
        scores: Sequence[float],
        language: str | None,
    ) -> Signs:
        """Of `found` sentences with their similarities and their worths; `language` is the question's."""
        order = sorted(range(len(found)), key=lambda at: -scores[at])
        best, place = found[order[0]], found[order[0]].passage - 1
        home = passages[place]
        elsewhere = [scores[at] for at in order if found[at].passage != best.passage]
        near = [max(similarities) if one.near is None else one.near for one in passages]
        matched = [covered.of_context(one) if one.matched is None else one.matched for one in passages]
        similarity = similarities[order[0]]
        return cls(
            similarity=similarity,
            ahead=similarity - sum(similarities) / len(similarities),
            margin=_margin(scores[order[0]], [scores[at] for at in order[1:]]),
            apart=_margin(scores[order[0]], elsewhere),
            near=near[place],
            near_lead=_lead(near, place),
            matched=matched[place],
            matched_lead=_lead(matched, place),
            agreed=float(near[place] == max(near) and matched[place] == max(matched)),
            rank=place / 4,
            joined=best.joined,
            overlap=best.overlap,
            coverage=covered.of_context(home),
            unnamed=covered.unnamed(passages),
            home_unnamed=covered.unnamed([home]),
            fit=float(best.fits > 0),
            unfit=float(best.fits < 0),
            row=float(best.is_row),
            brief=1.0 / max(1, len(covered.wanted)),
            foreign=1.0 - min(1.0, matched[place]) if _differ(language, home.language) else 0.0,
        )


def _differ(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and one != other


def _margin(best: float, others: Sequence[float]) -> float:
    return min(best - max(others), _MOST_MARGIN) if others else _MOST_MARGIN


def _lead(values: Sequence[float], place: int) -> float:
    others = [value for at, value in enumerate(values) if at != place]
    return values[place] - max(others) if others else _ALONE
