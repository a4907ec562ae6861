"""What distinguishes right answers from wrong ones: how near the sentence and its passage are to the
question, how they compare with others, and what of the question is missing everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from builtin_plugins.rag.answering.candidate import Candidate, Near
from builtin_plugins.rag.answering.coverage import Coverage
from builtin_plugins.rag.answering.languages import ALIKE
from builtin_plugins.rag.answering.passages import Passage

_MOST_MARGIN = 4.0
_UNRELATED = 0.15
_UNMATCHED = 0.2
_FAR_ABOVE = 0.5
"""A single passage is compared with unrelated ones instead: their similarity and share of a full match, and
the maximum lead of a sentence."""
_CLEARLY = 0.4  # similarity from which a passage in another language counts as about the question's subject


@dataclass(frozen=True, slots=True)
class Signs:
    """Signs of the best sentence, its passage ("home") and other passages; mostly 0..1, larger is better.

    `similarity` is the sentence's, `ahead` how far it is above the mean of the sentences weighed, `apart` its
    lead in worth over the best of another passage. `near` is the home's similarity, `near_lead` its lead over
    the best of the others, `matched_lead` that of its share of a full match by words. `agreed` is 1 if both
    parts of the search rank the home first. `coverage` is the share of the question's words that the home
    has, `unnamed` the share of its names, codes and numbers that it lacks; if question and home are in
    different languages, only those with digits count. `share` is that of the best sentence among all by their
    worths, as probabilities. `unfit` is 1 if the sentence has nothing of the expected kind. `subject` is the
    sentence's similarity to what the question is about (`Near`), `subject_ahead` how far that is above the
    mean; `subjectless` is 1 if the question has no subject. `foreign` is above 0 if question and home are in
    different languages, unless their words match anyway, if the home is near, and lacks no code or number.
    """

    similarity: float
    ahead: float
    apart: float
    near: float
    near_lead: float
    matched_lead: float
    agreed: float
    rank: float
    coverage: float
    unnamed: float
    unfit: float
    foreign: float
    share: float
    subject: float
    subject_ahead: float
    subjectless: float

    @classmethod
    def read(
        cls,
        covered: Coverage,
        passages: Sequence[Passage],
        found: Sequence[Candidate],
        nearness: Near,
        scores: Sequence[float],
        language: str | None,
    ) -> Signs:
        """The signs of `found` sentences, by their similarities and worths; `language` is the question's."""
        similarities, subject = nearness.question, nearness.subject
        order = sorted(range(len(found)), key=lambda at: -scores[at])
        best, place = found[order[0]], found[order[0]].passage - 1
        home = passages[place]
        elsewhere = [scores[at] for at in order if found[at].passage != best.passage]
        near = [max(similarities) if one.near is None else one.near for one in passages]
        by_words = [one.matched for one in passages if one.matched is not None]
        if len(by_words) < len(passages):  # two scales in one list can't be compared
            by_words = [covered.of(one) for one in passages]
        similarity, alone = similarities[order[0]], len(passages) == 1
        abroad = _differ(language, home.language)
        unnamed = covered.unnamed(home, translated=abroad)
        return cls(
            similarity=similarity,
            ahead=similarity - sum(similarities) / len(similarities),
            apart=_apart(scores[order[0]], elsewhere, _margin_alone(similarity) if alone else _MOST_MARGIN),
            near=near[place],
            near_lead=_lead(near, place, _UNRELATED),
            matched_lead=_lead(by_words, place, min(_UNMATCHED, by_words[place])),
            agreed=float(not alone and near[place] == max(near) and by_words[place] == max(by_words)),
            rank=place / 4,
            coverage=covered.of(home),
            unnamed=unnamed,
            unfit=float(best.fits < 0),
            foreign=(1.0 - unnamed) * _foreign(by_words[place], near[place]) if abroad else 0.0,
            share=1.0 / sum(math.exp(score - scores[order[0]]) for score in scores),
            subject=nearness.to_subject(order[0]),
            subject_ahead=subject[order[0]] - sum(subject) / len(subject) if subject else 0.0,
            subjectless=float(not subject),
        )


def _differ(asked: str | None, home: str | None) -> bool:
    if asked is None or home is None or asked == home:
        return False
    return not any({asked, home} <= group for group in ALIKE)


def _foreign(matched: float, near: float) -> float:
    """Makes up for what words can't show across languages, if the passage is near the subject at all."""
    return (1.0 - min(1.0, matched)) * min(1.0, max(0.0, near) / _CLEARLY)


def _apart(best: float, others: Sequence[float], unrivalled: float) -> float:
    return min(best - max(others), _MOST_MARGIN) if others else unrivalled


def _margin_alone(similarity: float) -> float:
    return _MOST_MARGIN * min(1.0, max(0.0, (similarity - _UNRELATED) / _FAR_ABOVE))


def _lead(values: Sequence[float], place: int, unrelated: float) -> float:
    """How far a passage is ahead of the best other one."""
    return values[place] - max((value for at, value in enumerate(values) if at != place), default=unrelated)
