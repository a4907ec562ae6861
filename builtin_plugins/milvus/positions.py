"""Up to where the engine has followed the rows of a collection, and whether this database knows of it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping

from pydantic import BaseModel
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from builtin_plugins.milvus.models import MarkRecord
from builtin_plugins.vectors.api import DROPPED, CollectionRecord, PointRecord
from kernel.sdk import Unit
from kernel.sdk.storage import insert_new

HIGHEST = 2**62
"""Above every label."""

_SETTLED_AFTER = 60.0  # seconds; by then every node of the engine has seen a step
_MOST_MARKS = 100_000  # of one collection


class Version(BaseModel):
    """A version of a collection, with its mark."""

    version: int
    mark: str


class Position(Version):
    """What the engine has of a collection: all points up to (`at_version`, `at_label`), and none that was
    deleted up to `version`.

    `form` stands for all that its content depends on besides the rows; `languages` are those of the texts;
    `moment` is when it was reached, in seconds since 1970.
    """

    name: str
    dimension: int
    form: str
    at_version: int
    at_label: int
    languages: list[str]
    moment: float

    def is_at(self, version: int) -> bool:
        """Whether the engine has all that the collection has in this version."""
        return self.version >= version and self.at_label == HIGHEST

    @property
    def settled(self) -> bool:
        """Whether every node of the engine has surely seen it."""
        return not 0 <= time.time() - self.moment < _SETTLED_AFTER


class EngineState(BaseModel):
    """What the engine says of a collection: it has reached a position, and may have a part of another."""

    reached: Position | None = None
    writing: Version | None = None


def put_mark(unit: Unit, collection: str) -> None:
    """Mark the present version of a collection."""
    query = select(CollectionRecord.id, CollectionRecord.version, CollectionRecord.floor)
    row = unit.session.execute(query.where(CollectionRecord.name == collection)).first()
    if row is None:
        return
    values = {"collection_id": row.id, "version": row.version, "mark": secrets.token_hex(8)}
    statement = insert_new(MarkRecord, is_sqlite=unit.is_sqlite)
    unit.session.connection().execute(statement, [values])
    oldest = max(row.floor, row.version - _MOST_MARKS)
    old = (MarkRecord.collection_id == row.id) & (MarkRecord.version < oldest)
    unit.session.execute(delete(MarkRecord).where(old))


def forget_marks(unit: Unit, collection: str) -> None:
    """Remove the marks of a collection that is being dropped."""
    mine = select(CollectionRecord.id).where(CollectionRecord.name == collection).scalar_subquery()
    unit.session.execute(delete(MarkRecord).where(MarkRecord.collection_id == mine))


def forget_all_marks(unit: Unit) -> None:
    """Remove all marks: the engine has nothing any more."""
    unit.session.execute(delete(MarkRecord))


def count_published(session: Session) -> int:
    """The points of all collections that are not dropped."""
    mine = PointRecord.collection_id.in_(list(searched_collections(session)))
    query = select(func.count()).select_from(PointRecord)
    return int(session.scalar(query.where(mine, PointRecord.version.is_not(None))) or 0)


def searched_collections(session: Session) -> dict[int, int]:
    """The versions of all collections that are not dropped, by id."""
    query = select(CollectionRecord.id, CollectionRecord.version)
    live = query.where(~CollectionRecord.name.startswith(DROPPED, autoescape=True))
    return {row.id: row.version for row in session.execute(live)}


def marks_of(session: Session, collection_id: int, versions: Iterable[int]) -> dict[int, str]:
    """The marks of these versions."""
    query = select(MarkRecord.version, MarkRecord.mark).where(MarkRecord.collection_id == collection_id)
    rows = session.execute(query.where(MarkRecord.version.in_(list(versions))))
    return {row.version: row.mark for row in rows}


def known_position(
    session: Session, collection_id: int, state: EngineState | None, form: str
) -> Position | None:
    """What the engine says, if it followed this database, and can go on from there."""
    if state is None or state.reached is None or state.reached.form != form:
        return None
    versions: list[Version] = [one for one in (state.reached, state.writing) if one is not None]
    marks = marks_of(session, collection_id, (one.version for one in versions))
    if any(marks.get(one.version) != one.mark for one in versions):
        return None
    floor = session.scalar(select(CollectionRecord.floor).where(CollectionRecord.id == collection_id))
    return state.reached if floor is not None and state.reached.version >= floor else None


def lacking(session: Session, states: Mapping[int, EngineState], form: str) -> list[int]:
    """The collections that the engine does not have completely, by what it says of them."""
    present = select(MarkRecord.collection_id, MarkRecord.mark).join(
        CollectionRecord,
        (CollectionRecord.id == MarkRecord.collection_id) & (CollectionRecord.version == MarkRecord.version),
    )
    marks = {row.collection_id: row.mark for row in session.execute(present)}

    def is_followed(collection_id: int, version: int) -> bool:
        state = states.get(collection_id)
        reached = None if state is None or state.writing is not None else state.reached
        return (
            reached is not None
            and reached.form == form
            and reached.mark == marks.get(collection_id)
            and reached.is_at(version)
        )

    versions = searched_collections(session)
    return [one for one, version in versions.items() if version and not is_followed(one, version)]
