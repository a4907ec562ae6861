"""The identity of this database, which its names in the engine contain."""

from __future__ import annotations

import secrets

from sqlalchemy.orm import Session

from builtin_plugins.milvus.models import IdentityRecord
from kernel.sdk import Database, Unit

_ROW = 1


async def identity_of(database: Database) -> str:
    """The identity, made when first needed. It is part of backups."""
    identity = await database.read(known_identity)
    return await database.write(_make_identity) if identity is None else identity


def known_identity(session: Session) -> str | None:
    """The identity; None if it was never needed."""
    row = session.get(IdentityRecord, _ROW)
    return None if row is None else str(row.identity)


def _make_identity(unit: Unit) -> str:
    unit.lock("milvus:identity")
    identity = known_identity(unit.session)
    if identity is None:
        identity = secrets.token_hex(4)
        unit.session.add(IdentityRecord(id=_ROW, identity=identity))
    return identity
