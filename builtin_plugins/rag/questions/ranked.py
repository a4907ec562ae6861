"""Ranked passages, with their scores from each part of the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from builtin_plugins.rag.answering.extractive import DEPTH
from builtin_plugins.rag.answering.passages import Passage
from builtin_plugins.rag.schemas import LegScores, SearchItem, Source
from builtin_plugins.rag.services.places import pages_of
from kernel.sdk import LANGUAGE, Embedded, StoredPoint, contracts

Shown = TypeVar("Shown", bound=Source)


@dataclass(frozen=True, slots=True)
class Ranked:
    """One passage with its place and scores.

    `position` is its index in the document; `tree_level` is 0 for the document's own passages and higher for
    summaries. `dense` is the similarity to the question on the model's own scale (`Embedded.similarity`),
    `words` the share of a full match (None without a search by words). The ranking is by `passage.score`. If
    `passage` was widened, `child` is the position of the found passage.
    """

    passage: Passage
    knowledge_base_id: str
    position: int
    dense: float
    words: float | None
    fused: float
    tree_level: int = 0
    rerank: float | None = None
    graph: float | None = None
    path: tuple[contracts.PathStep, ...] = ()
    child: int | None = None

    def scored(self, score: float, *, rerank: float | None = None) -> Ranked:
        """The same with another score; `rerank` if it comes from reranking."""
        passage = replace(self.passage, score=round(score, 6))
        return replace(self, passage=passage, rerank=self.rerank if rerank is None else rerank)

    def on_page(self, page: int | None) -> Ranked:
        """The same, on the page of what is quoted from it only."""
        return replace(self, passage=replace(self.passage, page=page, pages=()))

    @property
    def scores(self) -> LegScores:
        return LegScores(
            dense=round(min(1.0, max(0.0, self.dense)), 6),
            text=self.words,
            fused=self.fused,
            rerank=self.rerank,
            graph=self.graph,
        )


@dataclass(frozen=True, slots=True)
class Retrieved:
    """Passages, best first. `question` is the question's vector by the first knowledge base's model.

    `first` are the best passages, however many were requested: they decide whether there is an answer.
    """

    items: Sequence[Ranked]
    question: Embedded
    first: Sequence[Ranked] = ()

    @property
    def passages(self) -> list[Passage]:
        return [item.passage for item in self.items]

    @property
    def similarities(self) -> list[float]:
        return [item.dense for item in self.items]

    @property
    def judged(self) -> Sequence[Ranked]:
        """The passages that decide whether there is an answer, and make it up."""
        return self.first or self.items[:DEPTH]

    def of(self, items: Sequence[Ranked]) -> Retrieved:
        """Other passages of the same question."""
        return Retrieved(items, self.question)


def told(items: Sequence[Ranked], confidence: float) -> list[Ranked]:
    """The same passages, with scores moved so that their mean is the confidence in the answer.

    The order is kept, and the scores stay within 0 to 1.
    """
    scores = [min(1.0, max(0.0, item.passage.score)) for item in items]
    mean = sum(scores) / len(scores) if scores else 0.0
    if confidence <= mean:
        moved = [score * confidence / mean if mean else 0.0 for score in scores]
    else:
        moved = [1.0 - (1.0 - score) * (1.0 - confidence) / (1.0 - mean) for score in scores]
    return [item.scored(score) for item, score in zip(items, moved, strict=True)]


def on_pages(items: Sequence[Ranked], pages: Mapping[int, int | None]) -> list[Ranked]:
    """The same passages; `pages` maps the number (from 1) of each quoted one to its page."""
    return [item.on_page(pages[at]) if at in pages else item for at, item in enumerate(items, 1)]


def passage_of(
    point: StoredPoint, source: str, score: float, near: float, matched: float | None = None
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
        matched=matched,
        language=payload.get(LANGUAGE),
        pages=pages_of(payload),
    )


def source_of(item: Ranked, *, explain: bool = False) -> Source:
    """The passage as clients see it."""
    return _shown(Source, item, item.scores if explain else None)


def found_item(item: Ranked) -> SearchItem:
    """The passage as a search returns it."""
    return _shown(SearchItem, item, item.scores)


def _shown(kind: type[Shown], item: Ranked, scores: LegScores | None) -> Shown:
    passage = item.passage
    return kind(
        text=passage.text,
        source=passage.source,
        score=passage.score,
        chunk_id=passage.chunk_id,
        document_id=passage.document_id,
        page=passage.page,
        char_start=passage.char_start,
        char_end=passage.char_end,
        last_page=passage.last_page,
        context_type=None if item.child is None else "parent",
        child_chunk_index=item.child,
        tree_level=item.tree_level or None,
        path=[f"{step.source} —{step.relation}→ {step.target}" for step in item.path] or None,
        scores=scores,
    )


def cited_passage(item: Ranked) -> contracts.CitedPassage:
    """The passage as other plugins see it."""
    passage = item.passage
    return contracts.CitedPassage(
        text=passage.text,
        source=passage.source,
        score=passage.score,
        knowledge_base_id=item.knowledge_base_id,
        document_id=passage.document_id,
        chunk_id=passage.chunk_id,
        page=passage.page,
        char_start=passage.char_start,
        char_end=passage.char_end,
        last_page=passage.last_page,
    )
