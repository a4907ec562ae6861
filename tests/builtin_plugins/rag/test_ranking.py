"""One ranking out of several knowledge bases, the scores that are told, and where passages are shown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from builtin_plugins.inference.api import Embedded
from builtin_plugins.rag.models import KnowledgeBase
from builtin_plugins.rag.passages import Passage
from builtin_plugins.rag.questions.reporting import with_confidence
from builtin_plugins.rag.questions.retrieval import BaseHits, joined, merged, place_of
from builtin_plugins.vectors.api import Hit, StoredPoint
from kernel.testing import Running, Start
from tests.fakes.loaded_once import LoadedOnce

ASKED = Embedded(np.ones((1, 1), np.float32), "engine", unrelated=0.5)


@pytest.fixture
async def running(start_platform: Start) -> Running:
    """A platform that embeds nothing again: one model is all there is."""
    return await start_platform(LoadedOnce, "rag")


def found(name: str, cosine: float, words: float) -> BaseHits:
    """A knowledge base that found one passage."""
    point = StoredPoint(name, "document", 0, name, {})
    return BaseHits(KnowledgeBase(embedding_model="one"), [Hit(point, 0.0, cosine, words)])


def shown(chunk_id: str, span: tuple[int, int], child: int | None = None) -> Passage:
    start, end = span
    return Passage("", "a.md", 1.0, chunk_id, "document", char_start=start, char_end=end, child=child)


def stored(text: str, start: int, page: int | None = None, *pages: tuple[int, int]) -> StoredPoint:
    place = {"page": page, "char_start": start, "char_end": start + len(text), "pages": pages}
    return StoredPoint(text, "document", 0, text, place)


@pytest.mark.parametrize("cosines", [(0.5, 0.5), (0.4, 0.3), (0.9, 0.1)])
async def test_several_bases(running: Running, cosines: tuple[float, float]) -> None:
    """The nearer and better match comes first, also where no knowledge base has anything related."""
    bases = [found("worse", cosines[1], 0.1), found("better", cosines[0], 0.2)]
    hits = await merged(running.platform, bases, "a question", ASKED, 2, hybrid=True)
    assert [hit.point.id for hit in hits] == ["better", "worse"]


@pytest.mark.parametrize("confidence", [0.0, 0.2, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("scores", [(0.9, 0.1), (1.0, 1.0), (0.7, 0.0), (0.0, 0.0), (1.4, 0.3, -0.2)])
def test_told_scores(scores: tuple[float, ...], confidence: float) -> None:
    """Their mean is the confidence, in the same order and within 0 to 1, whatever the scores were."""
    items = [Passage("", "a.md", one, "", "") for one in scores]
    moved = [item.score for item in with_confidence(items, confidence)]
    assert moved == sorted(moved, reverse=True)
    assert all(0.0 <= one <= 1.0 for one in moved)
    if any(scores):
        assert sum(moved) / len(moved) == pytest.approx(confidence, abs=1e-5)


def test_where_a_passage_is_shown() -> None:
    """By itself before all else, within a widened one next; a plain one that spans it shows another."""
    plain, wide = shown("plain", (0, 900)), shown("wide", (100, 300), child=1)
    within, outside = shown("within", (150, 200)), shown("outside", (400, 500))
    assert [place_of(one, [plain, wide]) for one in (plain, wide, within, outside)] == [1, 2, 2, None]
    assert place_of(within, [wide, within]) == 2


def test_what_lies_between_passages_is_white_space() -> None:
    rows = [stored("One two", 0), stored("two three", 4), stored("Four", 20)]
    assert joined(rows) == ("One two three\nFour", (), ())


def test_pages_stay_where_they_begin_in_joined_passages() -> None:
    """One that begins within a passage, in an overlap, or with a passage is told once, at its place."""
    rows = [
        stored("One\n\ntwo", 0, 1, (5, 2)),
        stored("two three\n\nfour", 5, 2, (11, 3)),
        stored("Five", 30, 4),
        stored("six", 40, 4),
    ]
    text, pages, _ = joined(rows)
    assert [(text[start:].split()[0], page) for start, page in pages] == [
        ("two", 2),
        ("four", 3),
        ("Five", 4),
    ]


def test_sections_of_joined_passages() -> None:
    """One that goes on in the next passage is told once; an overlap changes no place."""
    rows = [stored("One\n\ntwo", 0), stored("two three", 5), stored("Four", 20)]
    told = [[(0, "A"), (5, "B")], [(0, "B")], [(0, "C")]]
    placed = [
        replace(row, payload={**row.payload, "sections": one}) for row, one in zip(rows, told, strict=True)
    ]
    text, _, sections = joined(placed)
    assert [(text[start:].split()[0], section) for start, section in sections] == [
        ("One", "A"),
        ("two", "B"),
        ("Four", "C"),
    ]
