"""Points and collections as rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from kernel.db.tables import CollectionRecord, PointRecord
from kernel.stores.protocols import EngineMismatch, Point, Query, StoredPoint

COLUMNS = (
    PointRecord.id,
    PointRecord.group_key,
    PointRecord.position,
    PointRecord.text,
    PointRecord.payload,
)


def find_collection(session: Session, name: str) -> CollectionRecord | None:
    return session.scalar(select(CollectionRecord).where(CollectionRecord.name == name))


def row_of(found: CollectionRecord, point: Point) -> dict[str, Any]:
    return {
        "collection_id": found.id,
        "id": point.id,
        "group_key": point.group,
        "position": point.position,
        "text": point.text,
        "payload": dict(point.payload),
        "vector": _halves(found, point).tobytes(),
        "version": None,
    }


def _halves(found: CollectionRecord, point: Point) -> npt.NDArray[np.float16]:
    if point.vector.shape != (found.dimension,):
        raise ValueError(f"point '{point.id}' needs {found.dimension} numbers, not {point.vector.shape}")
    halves = point.vector.astype(np.float16)
    if not np.isfinite(halves).all():
        raise ValueError(f"the vector of point '{point.id}' holds a value that is not finite")
    return halves


def stored_of(row: Any) -> StoredPoint:
    return StoredPoint(row.id, row.group_key, row.position, row.text, row.payload)


def annotate(
    session: Session, collection_id: int, version: int, group: str, values: Mapping[str, Any]
) -> None:
    """Add `values` to the payloads of a group's published points, which indexes then read anew."""
    mine = (PointRecord.collection_id == collection_id) & (PointRecord.group_key == group)
    query = select(PointRecord.label, PointRecord.payload).where(mine, PointRecord.version.is_not(None))
    changed = [
        {"label": row.label, "payload": {**row.payload, **values}, "version": version}
        for row in session.execute(query)
    ]
    if changed:
        session.execute(update(PointRecord), changed)


def check_fit(found: CollectionRecord, query: Query) -> None:
    """Raises EngineMismatch for a vector of another engine, ValueError for one that is just wrong."""
    size = query.vector.shape[0] if query.vector.ndim == 1 else 0
    if query.engine is not None and (query.engine, size) != (found.engine, found.dimension):
        raise EngineMismatch(f"{found.engine} [{found.dimension}]", f"{query.engine} [{size}]")
    if size != found.dimension:
        raise ValueError(f"the query must be {found.dimension} numbers, not {query.vector.shape}")
