"""One prefix, one database: an object names the database whose rows decide what may be removed."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from sqlalchemy.orm import Session

from builtin_plugins.s3_blobs.bucket import Bucket
from builtin_plugins.s3_blobs.models import DatabaseIdentity
from kernel.sdk import Database, Unit
from kernel.sdk.storage import BlobsAway, StoredBlob, held_among

MARKER = "installation"
"""The key, below the prefix, of the object with the identity of its database."""

_AT_ONCE = 500
_ROW = 1


async def claim(
    bucket: Bucket,
    database: Database,
    apart: Callable[..., Awaitable[Any]],
    stored: Callable[[], Awaitable[dict[str, StoredBlob]]],
) -> None:
    """Check that the prefix belongs to this database; claim it if it is empty. Raises BlobsAway, refused.

    `apart` calls a function in a thread of the store's.
    """
    marked, mine = await apart(_marked, bucket), await database.read(_identity)
    if marked is not None and marked == mine:
        return
    if marked is not None and mine is not None:
        raise _foreign(bucket, f"belongs to another database ({marked}; this one is {mine})")
    blobs = await stored()
    if (blobs or marked is not None) and not await _knows(database, list(blobs)):
        owner = "holds uploads of another database" if marked is None else "belongs to another database"
        raise _foreign(bucket, owner)
    # An older database, such as one restored from a backup without an identity, takes that of its prefix.
    mine = await database.write(_have_identity, mine or marked or secrets.token_hex(16))
    if marked is None:
        await apart(bucket.put_text, MARKER, mine)
        marked = await apart(_marked, bucket)
    if marked != mine:
        raise _foreign(bucket, "was just taken by another database")


def _foreign(bucket: Bucket, what: str) -> BlobsAway:
    return BlobsAway(
        f"{bucket.place} {what}, whose uploads would be removed. Name another prefix in"
        " PLATFORM_BLOB_STORE, or correct DATABASE_URL. Only if this database has taken the place of the"
        f" other one, and has its rows: delete the object '{MARKER}' there, and start again",
        refused=True,
    )


def _marked(bucket: Bucket) -> str | None:
    return bucket.get_text(MARKER)


async def _knows(database: Database, owners: list[str]) -> bool:
    for start in range(0, len(owners), _AT_ONCE):
        if await database.read(held_among, owners[start : start + _AT_ONCE]):
            return True
    return False


def _identity(session: Session) -> str | None:
    row = session.get(DatabaseIdentity, _ROW)
    return None if row is None else str(row.identity)


def _have_identity(unit: Unit, identity: str) -> str:
    """Write the identity, unless another process has just done so."""
    unit.lock("s3_blobs:identity")
    existing = _identity(unit.session)
    if existing is None:
        unit.session.add(DatabaseIdentity(id=_ROW, identity=identity))
    return existing or identity
