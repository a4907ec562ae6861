"""Finds the nearest points of a question in SQL. The statement that ranks also filters.

A statement that orders by `embedding` reads every allowed vector. One that orders by the cast that the
graph is made over (`graph_key`) may walk the graph, which continues until the filter has let enough through
(pgvector's iterative scans).
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import text as sql
from sqlalchemy.orm import Session

from builtin_plugins.pgvector.graphs import graph_key, graph_name
from builtin_plugins.vectors.api import CollectionRecord, Labels, Query, Ranking

NARROW = 5_000
"""Number of allowed points up to which all are compared, whatever the size of the collection."""

_EF_SEARCH = 200

_VECTOR = "CAST(CAST(:vector AS real[]) AS halfvec)"

# Plan for the actual parameters: a collection's graph is found by its number. Compiling the plan (JIT) would
# take longer than the search.
_PREPARE = sql(
    "SELECT set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_custom_plan', true),"
    " COALESCE((SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(:graph)), false)"
)

# Sorting would read everything: with it discouraged, the planner takes the order from the graph.
_WALK = sql(
    "SELECT set_config('hnsw.iterative_scan', 'strict_order', true), set_config('hnsw.ef_search', :ef, true),"
    " set_config('enable_sort', 'off', true)"
)
_SORT = sql("SELECT set_config('enable_sort', 'on', true)")


class Nearest:
    """A question to a collection at its version in `found`."""

    def __init__(
        self, session: Session, record: CollectionRecord, query: Query, allowed: Labels | None
    ) -> None:
        import numpy as np

        self._session = session
        self._record = record
        self._allowed = None if allowed is None else allowed.tolist()
        self._values = {"vector": query.vector.astype(np.float32).tolist(), "version": record.version}
        self._prepared: bool | None = None

    def best(self, k: int) -> Ranking:
        """The `k` nearest of the allowed points, through the graph if it helps."""
        if k <= 0 or self._allowed == []:
            return Ranking.empty()
        if self._has_graph() and not self._is_narrow():
            ranking = self._walk(k)
            if ranking.size == k:
                return ranking
        return self._ranked("v.embedding", self._limited(), ", v.label", k=k)

    def among(self, labels: Labels) -> Ranking:
        """The cosines of those of these points that exist, best first."""
        condition = " AND v.label = ANY(CAST(:labels AS bigint[]))"
        return self._ranked("v.embedding", condition, ", v.label", k=len(labels), labels=labels.tolist())

    def _has_graph(self) -> bool:
        if self._prepared is None:
            row = self._session.execute(_PREPARE, {"graph": graph_name(self._record.id)}).one()
            self._prepared = bool(row[2])
        return self._prepared

    def _is_narrow(self) -> bool:
        return self._allowed is not None and len(self._allowed) <= NARROW

    def _walk(self, k: int) -> Ranking:
        self._session.execute(_WALK, {"ef": str(min(1000, max(_EF_SEARCH, k)))})
        ranking = self._ranked(graph_key(self._record.dimension, "v."), self._limited(), "", k=k)
        self._session.execute(_SORT)
        return ranking

    def _limited(self) -> str:
        return "" if self._allowed is None else " AND v.label = ANY(CAST(:allowed AS bigint[]))"

    def _ranked(self, key: str, condition: str, then: str, **values: Any) -> Ranking:
        """Rows by distance. Our own numbers are inlined, so that the planner can use a partial index."""
        import numpy as np

        distance = f"{key} <#> {_VECTOR}"
        statement = (
            f"SELECT v.label, -({distance})"
            " FROM pgvector_point v JOIN vectors_point p ON p.label = v.label"
            f" WHERE v.collection_id = {self._record.id} AND p.collection_id = {self._record.id}"
            f" AND p.version <= :version{condition} ORDER BY {distance}{then} LIMIT :k"
        )
        if ":allowed" in condition:
            values["allowed"] = self._allowed
        rows = self._session.execute(sql(statement), {**self._values, **values}).all()
        if not rows:
            return Ranking.empty()
        labels, scores = zip(*rows, strict=True)
        return Ranking(np.array(labels, np.int64), np.array(scores, np.float32))
