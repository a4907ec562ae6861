"""The index of a walk: whatever comes and goes, it answers as one that was built of what is left."""

from __future__ import annotations

import random

from builtin_plugins.graph_rag.extraction.rules import extract
from builtin_plugins.graph_rag.walk.digests import Digest, digest
from builtin_plugins.graph_rag.walk.index import WalkIndex
from builtin_plugins.graph_rag.walk.steps import RankedSource, WalkStep, steps

_NAMES = [
    f"{one} {two}berg" for one in ("Ada", "Nils", "Vera", "Otto") for two in ("Lind", "Hol", "Sand", "Wal")
]


def _document(chance: random.Random) -> list[str]:
    return [
        f"{one} met {two} in the year of the flood, and {three} heard of it."
        for one, two, three in (chance.sample(_NAMES, 3) for _ in range(chance.randint(1, 3)))
    ]


def _digests(texts: list[str]) -> list[Digest]:
    return [digest(f"p{at}", at, text, extract(text)) for at, text in enumerate(texts)]


def _walked(index: WalkIndex, group: str, text: str) -> list[WalkStep]:
    return steps(index.segments, "Who heard of the flood?", [RankedSource(group, "p0", 1.0, text)])


def test_thousands_of_changes_leave_what_a_fresh_build_gives() -> None:
    """Documents are added, replaced and removed at random; steps are those of a new index, in its order."""
    chance, index = random.Random(5), WalkIndex()
    kept: dict[str, list[str]] = {}
    for _ in range(2_000):
        group = f"d{chance.randrange(60)}"
        if group in kept and chance.random() < 0.6:
            del kept[group]
            index.remove([group])
        else:
            kept[group] = _document(chance)
            index.put([(group, _digests(kept[group]))])
    fresh = WalkIndex()
    fresh.put([(group, _digests(texts)) for group, texts in kept.items()])
    assert index.count == fresh.count == sum(map(len, kept.values()))
    assert kept
    for group, texts in kept.items():
        assert _walked(index, group, texts[0]) == _walked(fresh, group, texts[0])


def test_small_additions_are_merged() -> None:
    """A thousand documents one by one leave a few segments, not a thousand."""
    index = WalkIndex()
    for at in range(1_000):
        index.put([(f"d{at}", _digests(["Ada Lindberg came."]))])
    assert index.count == 1_000
    assert len(index.segments) < 10


def test_what_is_removed_takes_no_room() -> None:
    index = WalkIndex()
    for at in range(100):
        index.put([(f"d{at}", _digests(_document(random.Random(at))))])
    before = index.nbytes
    index.remove(f"d{at}" for at in range(90))
    assert index.nbytes < before / 4
    index.remove(f"d{at}" for at in range(100))
    assert (index.count, index.segments) == (0, ())
