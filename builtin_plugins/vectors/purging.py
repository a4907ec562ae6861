"""Removes dropped collections: renamed at once, so that nobody finds them, and deleted in small steps.

The new name records that work is left: any process that starts later continues it.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from builtin_plugins.vectors.models import CollectionRecord, PointRecord, SavedIndexRecord, TombstoneRecord
from kernel.sdk import Database, Unit

DROPPED = "dropped:"
_AT_ONCE = 2000  # rows per transaction, for which writers wait some 50 ms


def set_aside(collection_id: int) -> Any:
    """The statement that hides a collection by renaming it, whatever it contains."""
    mine = CollectionRecord.id == collection_id
    return update(CollectionRecord).where(mine).values(name=f"{DROPPED}{collection_id}")


async def purge(database: Database) -> bool:
    """Delete the points of all dropped collections; returns whether there were any collections."""
    has_dropped = False
    while (dropped := await database.read(_next_dropped)) is not None:
        has_dropped = True
        while await database.write(_remove_some, dropped):
            pass
    if has_dropped:
        await database.scrub()
    return has_dropped


def _next_dropped(session: Session) -> int | None:
    """The next dropped collection."""
    query = select(CollectionRecord.id).where(CollectionRecord.name.startswith(DROPPED, autoescape=True))
    return session.scalar(query.order_by(CollectionRecord.id).limit(1))


def _remove_some(unit: Unit, collection_id: int) -> bool:
    """Delete some rows, or the collection once none is left; returns whether it still exists."""
    for table in (PointRecord, TombstoneRecord):
        some = select(table.label).where(table.collection_id == collection_id).limit(_AT_ONCE)
        removed: Any = unit.session.execute(delete(table).where(table.label.in_(some)))
        if removed.rowcount:
            return True
    unit.session.execute(delete(SavedIndexRecord).where(SavedIndexRecord.collection_id == collection_id))
    unit.session.execute(delete(CollectionRecord).where(CollectionRecord.id == collection_id))
    return False
