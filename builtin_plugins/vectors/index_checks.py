"""What `doctor` and the receipts of deletions say about saved search indexes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.vectors.index_folders import IndexFolders
from builtin_plugins.vectors.models import CollectionRecord
from builtin_plugins.vectors.purging import DROPPED
from builtin_plugins.vectors.settings import VectorSettings
from kernel.sdk import Finding, Platform

_CHECK = "indexes"


async def find_indexes(platform: Platform) -> AsyncIterator[Finding]:
    """How much is saved, and whether it can be."""
    home = platform.settings.home
    if not platform.settings_of(VectorSettings).save_indexes:
        yield Finding(_CHECK, "ok", "not saved: PLATFORM_VECTORS_SAVE_INDEXES is off")
        return
    folder = home / "vectors"
    if folder.exists() and not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        remedy = f"let the account that runs the platform read and write {folder}"
        yield Finding(
            _CHECK, "warning", f"{folder} can't be written: indexes are built at each start", remedy
        )
        return
    size = await asyncio.to_thread(IndexFolders(home).size)
    yield Finding(_CHECK, "ok", f"{size / 1e6:.0f} MB are saved")


def indexes_built_before(
    platform: Platform, session: Session, collections: Sequence[str], moment: datetime
) -> int:
    """How many index files on this machine may still have what was deleted at `moment`.

    Of these collections, and of dropped ones.
    """
    rows = session.execute(select(CollectionRecord.id, CollectionRecord.name)).all()
    existing = {row.id for row in rows if not row.name.startswith(DROPPED)}
    own = {row.id for row in rows if row.name in collections}
    return IndexFolders(platform.settings.home).older_than(moment.timestamp(), own, existing)
