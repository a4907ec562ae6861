"""Passages as clients see them, the events of an answer, and the trace of its steps."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from builtin_plugins.rag.passages import Passage, QuotedSpan
from builtin_plugins.rag.schemas import LegScores, QueryAnswer, QuotePlace, SearchItem, Source, StepTime
from builtin_plugins.rag.services.loading import pages_of, sections_of
from builtin_plugins.vectors.api import LANGUAGE, StoredPoint

Shown = TypeVar("Shown", bound=Source)


def with_confidence(items: Sequence[Passage], confidence: float) -> list[Passage]:
    """The same passages, with scores moved so that their mean is the confidence in the answer.

    The order is kept, and the scores stay within 0 to 1.
    """
    scores = [min(1.0, max(0.0, item.score)) for item in items]
    mean = sum(scores) / len(scores) if scores else 0.0
    if confidence <= mean:
        moved = [score * confidence / mean if mean else 0.0 for score in scores]
    else:
        moved = [1.0 - (1.0 - score) * (1.0 - confidence) / (1.0 - mean) for score in scores]
    return [item.scored(score) for item, score in zip(items, moved, strict=True)]


class CitedPlace(NamedTuple):
    """The page and the headings of what is quoted, if known."""

    page: int | None
    section: str | None = None


def in_places(items: Sequence[Passage], places: Mapping[int, CitedPlace]) -> list[Passage]:
    """The same passages; `places` maps the number (from 1) of each quoted one to where that is."""
    return [item.on_page(*places[at]) if at in places else item for at, item in enumerate(items, 1)]


def with_quotes(items: Sequence[Passage], quotes: Mapping[int, Sequence[QuotedSpan]]) -> list[Passage]:
    """The same passages; `quotes` maps the number (from 1) of each quoted one to what is quoted."""
    return [
        replace(item, quotes=tuple(sorted(set(quotes[at])))) if quotes.get(at) else item
        for at, item in enumerate(items, 1)
    ]


def passage_of(
    point: StoredPoint, kb_id: str, source: str, score: float, near: float, **measured: Any
) -> Passage:
    """A stored passage as it was found; `source` is the name of its document."""
    payload = point.payload
    return Passage(
        text=point.text,
        source=source,
        score=score,
        chunk_id=point.id,
        document_id=point.group,
        page=payload.get("page"),
        char_start=payload["char_start"],
        char_end=payload["char_end"],
        near=near,
        language=payload.get(LANGUAGE),
        pages=pages_of(payload),
        sections=sections_of(payload),
        knowledge_base_id=kb_id,
        position=point.position,
        tree_level=payload.get("tree_level", 0),
        **measured,
    )


def source_of(passage: Passage, *, explain: bool = False) -> Source:
    """The passage as clients see it."""
    return _render(Source, passage, _scores(passage) if explain else None)


def found_item(passage: Passage) -> SearchItem:
    """The passage as a search returns it."""
    return _render(SearchItem, passage, _scores(passage))


def _scores(passage: Passage) -> LegScores:
    return LegScores(
        dense=round(min(1.0, max(0.0, passage.near or 0.0)), 6),
        text=passage.matched,
        fused=passage.fused,
        rerank=passage.rerank,
        graph=passage.graph,
    )


def _render(kind: type[Shown], passage: Passage, scores: LegScores | None) -> Shown:
    return kind(
        text=passage.text,
        source=passage.source,
        score=passage.score,
        chunk_id=passage.chunk_id,
        document_id=passage.document_id,
        version=None if passage.version is None else passage.version.number,
        sha256=None if passage.version is None else passage.version.sha256,
        page=passage.page,
        char_start=passage.char_start,
        char_end=passage.char_end,
        last_page=passage.last_page,
        section=passage.section_at(0),
        quotes=[QuotePlace(**one._asdict()) for one in passage.quotes] or None,
        context_type=None if passage.child is None else "parent",
        child_chunk_index=passage.child,
        tree_level=passage.tree_level or None,
        path=[f"{step.source} —{step.relation}→ {step.target}" for step in passage.path] or None,
        scores=scores,
        being_read=passage.being_read or None,
    )


@dataclass(frozen=True)
class WorkStep:
    """A step of the work begins; `message` is for people."""

    name: str
    message: str


@dataclass(frozen=True)
class AnswerBasis:
    """The passages that the answer will be based on; rendered only on demand, as drafts show none."""

    passages: Sequence[Passage]
    explain: bool = False

    @property
    def sources(self) -> list[Source]:
        """The sources as clients see them; the first is cited as [1]."""
        return [source_of(one, explain=self.explain) for one in self.passages]


@dataclass(frozen=True)
class AnswerPiece:
    """The next piece of the answer's text."""

    text: str


@dataclass(frozen=True)
class Done:
    """The whole answer, and its sources as they were found."""

    answer: QueryAnswer
    passages: Sequence[Passage]


Event = WorkStep | AnswerBasis | AnswerPiece | Done


def plural(number: float, noun: str) -> str:
    """`1 second`, `2 seconds`, `0.5 seconds`."""
    return f"{number:g} {noun}{'' if number == 1 else 's'}"


class Trace:
    """Steps, notes and details of one question.

    `degraded` lists what was not done as requested; `details` is what the method reports.
    """

    def __init__(self) -> None:
        self.steps: list[StepTime] = []
        self.degraded: list[str] = []
        self.details: dict[str, Any] = {}
        self._queue: asyncio.Queue[WorkStep | None] = asyncio.Queue()

    @contextmanager
    def step(self, name: str, message: str) -> Iterator[None]:
        """Report that a step begins, and measure its time."""
        self._queue.put_nowait(WorkStep(name, message))
        started = time.perf_counter()
        try:
            yield
        finally:
            self.steps.append(StepTime(step=name, ms=round((time.perf_counter() - started) * 1000, 3)))

    def degrade(self, note: str) -> None:
        """Note something that was not done as requested, each note once."""
        if note not in self.degraded:
            self.degraded.append(note)

    async def follow(self) -> AsyncGenerator[WorkStep, None]:
        """Yield the steps as they begin, until `close`."""
        while (step := await self._queue.get()) is not None:
            yield step

    def close(self) -> None:
        """End the stream of steps."""
        self._queue.put_nowait(None)
