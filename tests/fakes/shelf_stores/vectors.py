"""A vector store that compares with everything: right, and slow."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, delete, func, insert, select, update
from sqlalchemy.orm import Session

from builtin_plugins.inference.api import Embedded
from builtin_plugins.vectors.api import (
    EngineMismatch,
    GroupQuery,
    Hit,
    Point,
    Query,
    StoredPoint,
    WordQuery,
)
from kernel.sdk import Database, Unit

from .models import ShelfCollection, ShelfPoint


class ShelfVectors:
    """A `VectorStore` in two tables of its own."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ensure(self, unit: Unit, collection: str, dimension: int, engine: str) -> None:
        unit.lock(f"shelf:{collection}")
        found = unit.session.get(ShelfCollection, collection)
        if found is None:
            unit.session.add(ShelfCollection(name=collection, dimension=dimension, engine=engine))
            unit.session.flush()
        elif (found.dimension, found.engine) != (dimension, engine):
            raise EngineMismatch(found.engine, engine)

    def stage(self, unit: Unit, collection: str, points: Sequence[Point]) -> None:
        found = unit.session.get(ShelfCollection, collection)
        if found is None:
            raise LookupError(f"nobody made the collection '{collection}'")
        for point in points:
            _check(point.vector, found.dimension, point.id)
        known = unit.session.scalars(
            select(ShelfPoint.id).where(ShelfPoint.collection == collection, _among([p.id for p in points]))
        )
        there = set(known)
        rows = [_row(collection, point) for point in points if point.id not in there]
        if rows:
            unit.session.execute(insert(ShelfPoint), rows)

    async def staged(self, collection: str, group: str) -> int:
        return await self._database.read(_number, _of(collection, group))

    def publish(self, unit: Unit, collection: str, *groups: str) -> int:
        for group in groups:
            change = update(ShelfPoint).where(_of(collection, group)).values(published=True)
            unit.session.execute(change, execution_options={"synchronize_session": False})
        return sum(_number(unit.session, _of(collection, group)) for group in groups)

    def annotate(self, unit: Unit, collection: str, group: str, values: Mapping[str, Any]) -> None:
        for row in unit.session.scalars(
            select(ShelfPoint).where(_of(collection, group), ShelfPoint.published)
        ):
            row.payload = {**row.payload, **values}

    def remove_group(self, unit: Unit, collection: str, group: str) -> int:
        count = _number(unit.session, _of(collection, group))
        unit.session.execute(delete(ShelfPoint).where(_of(collection, group)))
        return count

    def retire(self, unit: Unit, collection: str, group: str, into: str) -> int:
        count = _number(unit.session, _of(collection, group))
        published = _of(collection, group) & ShelfPoint.published
        unit.session.execute(update(ShelfPoint).where(published).values(collection=into))
        self.remove_group(unit, collection, group)
        return count

    def drop(self, unit: Unit, collection: str) -> None:
        unit.session.execute(delete(ShelfPoint).where(ShelfPoint.collection == collection))
        unit.session.execute(delete(ShelfCollection).where(ShelfCollection.name == collection))

    def rename(self, unit: Unit, collection: str, name: str) -> None:
        for column in (ShelfPoint.collection, ShelfCollection.name):
            unit.session.execute(update(column.class_).where(column == collection).values({column: name}))

    async def search(self, collection: str, query: Query) -> list[Hit]:
        hits = await self._database.snapshot(_found, collection, query)
        return sorted(hits, key=lambda hit: -hit.score)[: query.k]

    async def search_words(self, collection: str, query: WordQuery) -> list[Hit]:
        hits = await self._database.snapshot(_worded, collection, query)
        return sorted(hits, key=lambda hit: -hit.score)[: query.k]

    async def points(
        self, collection: str, group: str, limit: int, offset: int
    ) -> tuple[list[StoredPoint], int]:
        seen = _of(collection, group) & ShelfPoint.published
        return await self._database.snapshot(_page, seen, limit, offset)

    async def vectors(self, collection: str, group: str, limit: int, offset: int) -> Embedded | None:
        seen = _of(collection, group) & ShelfPoint.published
        return await self._database.snapshot(_vectors, collection, seen, limit, offset)

    async def count(self, collection: str) -> int:
        return await self._database.read(
            _number, (ShelfPoint.collection == collection) & ShelfPoint.published
        )


def _found(session: Session, collection: str, query: Query) -> list[Hit]:
    found = session.get(ShelfCollection, collection)
    if found is None:
        return []
    if query.engine not in (None, found.engine):
        raise EngineMismatch(found.engine, str(query.engine))
    _check(query.vector, found.dimension, "the question")
    return [_hit(row, query) for row in _seen(session, collection, query)]


def _worded(session: Session, collection: str, query: WordQuery) -> list[Hit]:
    found = ((row, _share(query.text, row)) for row in _seen(session, collection, query))
    return [Hit(_stored(row), share, 0.0, share) for row, share in found if share]


def _seen(session: Session, collection: str, query: Query | WordQuery) -> Sequence[ShelfPoint]:
    seen = select(ShelfPoint).where(ShelfPoint.collection == collection, ShelfPoint.published)
    if query.groups is not None:
        groups = query.groups.names if isinstance(query.groups, GroupQuery) else query.groups
        seen = seen.where(ShelfPoint.group_key.in_(groups))
    return session.scalars(seen).all()


def _page(
    session: Session, seen: ColumnElement[bool], limit: int, offset: int
) -> tuple[list[StoredPoint], int]:
    page = select(ShelfPoint).where(seen).order_by(ShelfPoint.position).limit(limit).offset(offset)
    return [_stored(row) for row in session.scalars(page)], _number(session, seen)


def _vectors(
    session: Session, collection: str, seen: ColumnElement[bool], limit: int, offset: int
) -> Embedded | None:
    found = session.get(ShelfCollection, collection)
    if found is None:
        return None
    page = select(ShelfPoint.vector).where(seen).order_by(ShelfPoint.position).limit(limit).offset(offset)
    rows = np.frombuffer(b"".join(session.scalars(page)), np.float32)
    return Embedded(rows.reshape(-1, found.dimension), found.engine)


def _number(session: Session, condition: ColumnElement[bool]) -> int:
    return session.scalar(select(func.count()).select_from(ShelfPoint).where(condition)) or 0


def _of(collection: str, group: str) -> ColumnElement[bool]:
    return (ShelfPoint.collection == collection) & (ShelfPoint.group_key == group)


def _among(ids: Sequence[str]) -> ColumnElement[bool]:
    return ShelfPoint.id.in_(ids)


def _check(vector: np.ndarray, dimension: int, of: str) -> None:
    if len(vector) != dimension or not np.isfinite(vector).all():
        raise ValueError(f"the vector of {of} must be {dimension} finite numbers")


def _row(collection: str, point: Point) -> dict[str, object]:
    return {
        "collection": collection,
        "id": point.id,
        "group_key": point.group,
        "position": point.position,
        "text": point.text,
        "payload": dict(point.payload),
        "vector": np.asarray(point.vector, np.float32).tobytes(),
        "published": False,
    }


def _stored(row: ShelfPoint) -> StoredPoint:
    return StoredPoint(row.id, row.group_key, row.position, row.text, row.payload)


def _hit(row: ShelfPoint, query: Query) -> Hit:
    cosine = float(np.frombuffer(row.vector, np.float32) @ query.vector)
    if query.text is None:
        return Hit(_stored(row), cosine, cosine)
    return Hit(_stored(row), (_share(query.text, row) * 2 + cosine) / 3, cosine)


def _share(text: str, row: ShelfPoint) -> float:
    wanted = _words(text)
    return len(wanted & _words(row.text)) / len(wanted) if wanted else 0.0


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))
