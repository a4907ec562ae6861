"""A number for each knowledge base that grows with every change of what filters read there.

Searches keep what a filter found for as long as it stays the same. Raising it locks its row until the commit,
so that on every database what is committed is in the order of the numbers.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, select, update
from sqlalchemy.orm import Session

from builtin_plugins.rag.models import MetadataVersion
from kernel.sdk.storage import insert_new


def raise_version(session: Session, base_id: str) -> None:
    """Say that the values or paths of documents change in this unit; after their rows were locked."""
    connection, new = session.connection(), {"knowledge_base_id": base_id, "version": 0}
    is_sqlite = connection.dialect.name == "sqlite"
    connection.execute(insert_new(MetadataVersion, is_sqlite=is_sqlite), [new])
    mine = MetadataVersion.knowledge_base_id == base_id
    session.execute(update(MetadataVersion).where(mine).values(version=MetadataVersion.version + 1))


def version_of(base_id: str) -> Select[Any]:
    """A query for the number; it finds nothing before the first change."""
    return select(MetadataVersion.version).where(MetadataVersion.knowledge_base_id == base_id)
