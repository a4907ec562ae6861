"""The identity of this database, which its names in the engine contain."""

from __future__ import annotations

import secrets

from sqlalchemy.orm import Session

from builtin_plugins.milvus.models import IdentityRecord
from kernel.sdk import Database, Unit

_ROW = 1


async def identity_of(database: Database) -> str:
    """The identity, made when first needed. It is part of backups."""
    found = await database.read(known_identity)
    return await database.write(_make_identity) if found is None else found


def known_identity(session: Session) -> str | None:
    """The identity; None if it was never needed."""
    row = session.get(IdentityRecord, _ROW)
    return None if row is None else str(row.identity)


def _make_identity(unit: Unit) -> str:
    unit.lock("milvus:identity")
    found = known_identity(unit.session)
    if found is None:
        found = secrets.token_hex(4)
        unit.session.add(IdentityRecord(id=_ROW, identity=found))
    return found
