"""What knowledge bases take up, recorded once a day (UTC).

A day that no server ran on has no record. Those of a deleted knowledge base go with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from sqlalchemy import Select, delete, func, select
from sqlalchemy.orm import Session

from builtin_plugins.rag.models import Document, KnowledgeBase, StorageDay
from kernel.sdk import Job, NoPayload, Platform, Unit
from kernel.sdk.storage import insert_new

AMOUNTS = ("size_bytes", "files")
_KEPT: Final = timedelta(days=400)


def amounts() -> Select[int, int]:
    """The bytes and the number of files that the caller chooses; an index has both."""
    size = func.coalesce(func.sum(Document.size_bytes), 0)
    return select(size.label("size_bytes"), func.count().label("files"))


async def record(platform: Platform, _payload: NoPayload) -> None:
    """Once a day: record what each knowledge base takes up; remove records older than 400 days."""
    # Summed up before the unit, in which nobody else could write.
    found = await platform.database.read(_sums)
    await platform.database.write(_record, found)


def _sums(session: Session) -> Mapping[str, Mapping[str, int]]:
    query = amounts().add_columns(Document.knowledge_base_id).group_by(Document.knowledge_base_id)
    rows = session.execute(query).mappings()
    return {row["knowledge_base_id"]: {name: row[name] for name in AMOUNTS} for row in rows}


def _record(unit: Unit, found: Mapping[str, Mapping[str, int]]) -> None:
    today, nothing = unit.now().date(), dict.fromkeys(AMOUNTS, 0)
    bases: Sequence[str] = unit.session.scalars(select(KnowledgeBase.id)).all()
    rows = [{"knowledge_base_id": base, "day": today, **found.get(base, nothing)} for base in bases]
    if rows:
        connection = unit.session.connection()
        connection.execute(insert_new(StorageDay, is_sqlite=connection.dialect.name == "sqlite"), rows)
    unit.session.execute(delete(StorageDay).where(StorageDay.day < today - _KEPT))


RECORD_STORAGE = Job("rag.record_storage", NoPayload, record, schedule="50 23 * * *")
