"""Made-up articles: endless, deterministic, with the word lengths of ordinary English."""

from __future__ import annotations

import random

_SUBJECTS = "committee engineer harbour library orchard museum council laboratory railway hospital"
_VERBS = "describes measures repairs restores examines delivers schedules inspects replaces compares"
_OBJECTS = "turbine archive bridge contract filter manuscript signal pipeline reservoir vehicle"
_PLACES = "Aarhus Bergen Coimbra Dresden Espoo Fribourg Ghent Heraklion Innsbruck Jelgava"
_TAILS = (
    "because the previous report left several questions open",
    "although the budget for the season had already been spent",
    "so that the work could be finished before the first frost",
    "while two independent observers kept a record of every step",
    "after the regional office had agreed to the revised plan",
)


def article(number: int, paragraphs: int) -> str:
    chance = random.Random(number)
    return "\n\n".join(_paragraph(chance, number, at) for at in range(paragraphs))


def _paragraph(chance: random.Random, number: int, at: int) -> str:
    return " ".join(_sentence(chance, number, at) for _ in range(chance.randint(3, 6)))


def _sentence(chance: random.Random, number: int, at: int) -> str:
    subject, verb, thing = (
        chance.choice(_SUBJECTS.split()),
        chance.choice(_VERBS.split()),
        chance.choice(_OBJECTS.split()),
    )
    place, tail = chance.choice(_PLACES.split()), chance.choice(_TAILS)
    return f"The {subject} in {place} {verb} {thing} {number}-{at}-{chance.randint(1, 999)} {tail}."
