"""Points and collections as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, bindparam, select, update
from sqlalchemy.orm import Session

from builtin_plugins.vectors.models import CollectionRecord, PointRecord
from builtin_plugins.vectors.protocol import (
    EngineMismatch,
    Point,
    Query,
    StoredPoint,
    Vector,
)
from kernel.sdk import Prepared
from kernel.sdk.storage import Among, Ids

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_COLLECTION: Any = CollectionRecord.__table__
_POINT: Any = PointRecord.__table__

COLUMNS = (
    PointRecord.id,
    PointRecord.group_key,
    PointRecord.position,
    PointRecord.text,
    PointRecord.payload,
)


_FOUND = Prepared(select(*_COLLECTION.c).where(_COLLECTION.c.name == bindparam("name")))
_LABELLED = Prepared(
    select(
        *(_POINT.c.label, _POINT.c.id, _POINT.c.group_key.label("group")),
        *(_POINT.c.position, _POINT.c.text, _POINT.c.payload),
    ).where(Among(_POINT.c.label, bindparam("labels", type_=Ids(BigInteger))))
)
_VECTORS = Prepared(
    select(_POINT.c.label, _POINT.c.vector).where(
        Among(_POINT.c.label, bindparam("labels", type_=Ids(BigInteger)))
    )
)


def read_collection(session: Session, name: str) -> CollectionRecord | None:
    """The collection as it is now, for reading only: half a millisecond faster."""
    row = _FOUND.first(session, {"name": name})
    return None if row is None else CollectionRecord(**row)


def read_labelled(session: Session, labels: Sequence[int]) -> dict[int, StoredPoint]:
    """The points with these labels, by label."""
    rows = _LABELLED.all(session, {"labels": labels})
    return {row.pop("label"): StoredPoint(**row) for row in rows}


def cosines_of(session: Session, labels: Sequence[int], question: Vector) -> dict[int, float]:
    """The cosines of these points' stored vectors to another vector, by label."""
    import numpy as np

    rows = _VECTORS.all(session, {"labels": labels})
    if not rows:  # deleted in the meantime
        return {}
    halves = np.frombuffer(b"".join(row["vector"] for row in rows), np.float16)
    cosines = halves.reshape(len(rows), -1).astype(np.float32) @ question
    return {row["label"]: cosine for row, cosine in zip(rows, cosines.tolist(), strict=True)}


def find_collection(session: Session, name: str) -> CollectionRecord | None:
    return session.scalar(select(CollectionRecord).where(CollectionRecord.name == name))


def row_of(record: CollectionRecord, point: Point) -> dict[str, Any]:
    return {
        "collection_id": record.id,
        "id": point.id,
        "group_key": point.group,
        "position": point.position,
        "text": point.text,
        "payload": dict(point.payload),
        "vector": _halves(record, point).tobytes(),
        "version": None,
    }


def _halves(record: CollectionRecord, point: Point) -> npt.NDArray[np.float16]:
    import numpy as np

    if point.vector.shape != (record.dimension,):
        raise ValueError(f"point '{point.id}' needs {record.dimension} numbers, not {point.vector.shape}")
    halves = point.vector.astype(np.float16)
    if not np.isfinite(halves).all():
        raise ValueError(f"the vector of point '{point.id}' holds a value that is not finite")
    return halves


def stored_of(row: Any) -> StoredPoint:
    return StoredPoint(row.id, row.group_key, row.position, row.text, row.payload)


def annotate(
    session: Session, collection_id: int, version: int, group: str, values: Mapping[str, Any]
) -> None:
    """Add `values` to the payloads of a group's published points; indexes then read them again."""
    mine = (PointRecord.collection_id == collection_id) & (PointRecord.group_key == group)
    query = select(PointRecord.label, PointRecord.payload).where(mine, PointRecord.version.is_not(None))
    changed = [
        {"label": row.label, "payload": {**row.payload, **values}, "version": version}
        for row in session.execute(query)
    ]
    if changed:
        session.execute(update(PointRecord), changed)


def check_fit(record: CollectionRecord, query: Query) -> None:
    """Raise EngineMismatch for a vector of another engine, ValueError for an unusable one."""
    size = query.vector.shape[0] if query.vector.ndim == 1 else 0
    if query.engine is not None and (query.engine, size) != (record.engine, record.dimension):
        raise EngineMismatch(f"{record.engine} [{record.dimension}]", f"{query.engine} [{size}]")
    if size != record.dimension:
        raise ValueError(f"the query must be {record.dimension} numbers, not {query.vector.shape}")
