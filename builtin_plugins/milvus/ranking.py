"""Ranks the points of one collection in the engine. Every question to it has the filter in it."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from builtin_plugins.milvus.engine import (
    COLLECTION,
    GROUP,
    LABEL,
    SAMPLE,
    SAMPLES,
    VECTOR,
    WEIGHTS,
    MilvusEngine,
)
from builtin_plugins.milvus.weights import number_of, question_of
from builtin_plugins.vectors.api import (
    Judged,
    Labels,
    Query,
    Ranking,
    WordQuery,
    both_legs,
    fuse,
    hybrid_weight,
)

if TYPE_CHECKING:
    from builtin_plugins.milvus.positions import Position
    from builtin_plugins.vectors.api import TermReader, WeighedTerms

_NAMES_AT_ONCE = 10_000
"""Number of groups in one question to the engine; more are asked about in several."""

_MOST_TOTALS = 10_000
_COUNTED = 1_000
"""Up to this number, texts with a term are counted exactly, above it from a sample."""


class Totals:
    """How many texts filters leave, until their collection changes. May be used from any thread."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._totals: OrderedDict[bytes, int] = OrderedDict()

    def of(self, version: str, limit: str, count: Callable[[], int]) -> int:
        """What was counted at this version, or what `count` returns."""
        key = hashlib.sha256(f"{version} {limit}".encode()).digest()
        with self._guard:
            total = self._totals.get(key)
        if total is None:
            total = count()
            with self._guard:
                self._totals[key] = total
                if len(self._totals) > _MOST_TOTALS:
                    self._totals.popitem(last=False)
        return total


class EngineRanking:
    """A query to a collection at a position of the engine, limited to groups. Its methods block."""

    def __init__(
        self,
        engine: MilvusEngine,
        reader: TermReader,
        totals: Totals,
        collection_id: int,
        position: Position,
        query: Query | WordQuery,
        groups: Sequence[str] | None,
    ) -> None:
        self._engine = engine
        self._reader = reader
        self._totals = totals
        self._position = position
        self._query = query
        self._all = f"{COLLECTION} == {collection_id}"
        self._limits = [self._all] if groups is None else list(self._limited(groups))

    def judged(self) -> Judged:
        """The best points."""
        query = self._query
        if not self._limits or query.k <= 0:
            return Judged.by_cosine(Ranking.empty())
        if isinstance(query, WordQuery):
            return fuse(Ranking.empty(), self._worded(query.k, None), query.k, 0.0)
        if query.text is None:
            return Judged.by_cosine(self._near(query.k, None))
        dense, text = both_legs(self._near, self._worded, query.k)
        return fuse(dense, text, query.k, hybrid_weight(query.text, query.meaning), query.unrelated)

    def _limited(self, groups: Sequence[str]) -> Iterator[str]:
        for start in range(0, len(groups), _NAMES_AT_ONCE):
            names = json.dumps(list(groups[start : start + _NAMES_AT_ONCE]), ensure_ascii=False)
            yield f"{self._all} and {GROUP} in {names}"

    def _near(self, k: int, among: Labels | None) -> Ranking:
        assert isinstance(self._query, Query)
        return self._best(VECTOR, self._query.vector.tolist(), k, among)

    def _worded(self, k: int, among: Labels | None) -> Ranking:
        terms = self._terms
        if not terms.weights:
            return Ranking.empty()
        ranking = self._best(WEIGHTS, question_of(terms.weights), k, among)
        return ranking._replace(full=terms.full)

    def _best(self, field: str, question: Any, k: int, among: Labels | None) -> Ranking:
        import numpy as np

        limits = self._limits if among is None else [f"{self._all} and {LABEL} in {among.tolist()}"]
        matches = [match for limit in limits for match in self._search(field, [question], k, limit)[0]]
        if not matches:
            return Ranking.empty()
        matches.sort(key=lambda match: (-match[1], match[0]))
        labels, scores = zip(*matches[:k], strict=True)
        return Ranking(np.array(labels, np.int64), np.array(scores, np.float32))

    def _search(self, field: str, questions: list[Any], k: int, limit: str) -> list[list[tuple[int, float]]]:
        exact = not self._position.settled
        return self._engine.search(self._position.dimension, field, questions, k, limit, exact=exact)

    @cached_property
    def _terms(self) -> WeighedTerms:
        """The question's terms, weighed among the groups that are searched if nothing else may show."""
        limits = self._limits if self._query.is_isolated else [self._all]
        readings = [
            self._reader.of_question(self._query.text or "", language)
            for language in (None, *self._position.languages)
        ]
        counts = self._containing(list(dict.fromkeys(term for terms in readings for term in terms)), limits)
        if self._query.is_isolated:
            readings = [terms for terms in readings if any(counts[term] for term in terms)]
        return self._reader.weigh(readings, counts, self._total(limits))

    def _containing(self, terms: Sequence[str], limits: Sequence[str]) -> Mapping[str, int]:
        """How many texts have each term."""
        counts = self._counts(terms, limits)
        frequent = [term for term in terms if counts[term] >= _COUNTED]
        sampled = self._counts(frequent, [f"{limit} and {SAMPLE} == 0" for limit in limits])
        return counts | {term: max(counts[term], SAMPLES * sampled[term]) for term in frequent}

    def _counts(self, terms: Sequence[str], limits: Sequence[str]) -> dict[str, int]:
        counts = dict.fromkeys(terms, 0)
        if not terms:
            return counts
        questions = [{number_of(term): 1.0} for term in terms]
        for limit in limits:
            for term, hits in zip(terms, self._search(WEIGHTS, questions, _COUNTED, limit), strict=True):
                counts[term] += len(hits)
        return counts

    def _total(self, limits: Sequence[str]) -> int:
        """How many texts there are."""
        position = self._position

        def count(limit: str) -> int:
            return self._engine.count_of(position.dimension, limit, exact=not position.settled)

        version = f"{position.version} {position.mark}"
        return sum(self._totals.of(version, limit, partial(count, limit)) for limit in limits)
