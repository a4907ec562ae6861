"""A number for each knowledge base that grows with every change of what filters read there.

Searches keep what a filter found for as long as it stays the same. Raising it locks its row until the commit,
so that on every database what is committed is in the order of the numbers. Who may read documents is a part
of the filter; as the members of readers belong to no knowledge base, they have a number of their own.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, func, select, update
from sqlalchemy.orm import Session

from builtin_plugins.rag.models import MemberVersion, MetadataVersion
from kernel.sdk.storage import insert_new


def raise_version(session: Session, base_id: str) -> None:
    """Say that the values or paths of documents change in this unit; after their rows were locked."""
    connection, new = session.connection(), {"knowledge_base_id": base_id, "version": 0}
    is_sqlite = connection.dialect.name == "sqlite"
    connection.execute(insert_new(MetadataVersion, is_sqlite=is_sqlite), [new])
    mine = MetadataVersion.knowledge_base_id == base_id
    session.execute(update(MetadataVersion).where(mine).values(version=MetadataVersion.version + 1))


def raise_member_version(session: Session) -> None:
    """Say that the members of readers, or readers, change in this unit; after `raise_version`, if at all."""
    connection, new = session.connection(), {"id": 1, "version": 0}
    is_sqlite = connection.dialect.name == "sqlite"
    connection.execute(insert_new(MemberVersion, is_sqlite=is_sqlite), [new])
    session.execute(update(MemberVersion).values(version=MemberVersion.version + 1))


def version_of(base_id: str) -> Select[Any]:
    """A query for the number; it finds nothing before the first change."""
    return select(MetadataVersion.version).where(MetadataVersion.knowledge_base_id == base_id)


def version_with_members(base_id: str) -> Select[Any]:
    """A query for a number that also grows with every change of readers and their members."""
    both = (version_of(base_id), select(MemberVersion.version))
    of_base, of_members = (func.coalesce(one.scalar_subquery(), 0) for one in both)
    return select(of_base + of_members)
