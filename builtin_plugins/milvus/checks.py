"""What `/health`, `doctor` and the receipts of deletions say about the engine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.milvus.engine import EngineAway, MilvusEngine
from builtin_plugins.milvus.identity import known_identity
from builtin_plugins.milvus.models import MarkRecord
from builtin_plugins.milvus.positions import count_published, searched_collections
from builtin_plugins.milvus.settings import MilvusSettings
from builtin_plugins.milvus.store import MilvusStore
from builtin_plugins.vectors.api import VECTORS
from kernel.sdk import Finding, NotConfigured, Platform, Unhealthy, off_the_loop

_CHECK = "milvus"
_FILL = "run 'platformctl milvus fill'; if that changes nothing, 'platformctl milvus fill --again'"


async def check_engine(platform: Platform) -> None:
    """Whether the engine answers, and has enough for searches not to wait."""
    store = platform.resource(VECTORS)
    if not isinstance(store, MilvusStore):
        raise NotConfigured
    engine = store.following.engine
    try:
        await engine.run(engine.version)
        behind = await store.following.waiting()
    except EngineAway:
        raise Unhealthy("Milvus does not answer; searches are answered 503 until it does") from None
    if behind:
        raise Unhealthy(
            f"Milvus is being filled; searches of {behind} collections are answered 503 until then"
        )


async def find_engine(platform: Platform) -> AsyncIterator[Finding]:
    """Address, version, and whether the engine has as many passages as the database."""
    identity = await platform.database.read(used_identity)
    if identity is None:
        return
    engine = MilvusEngine(platform.settings_of(MilvusSettings), identity)
    try:
        version = await engine.run(engine.version)
        count = await engine.run(engine.count, "label >= 0")
    except EngineAway as error:
        remedy = "check PLATFORM_MILVUS_URI and PLATFORM_MILVUS_TOKEN, and that Milvus runs"
        yield Finding(_CHECK, "failed", f"{engine.address} can't be asked: {error.reason}", remedy)
        return
    finally:
        await asyncio.to_thread(engine.close)
    published_count = await platform.database.read(count_published)
    where = f"{engine.address}, version {version}"
    if count == published_count:
        yield Finding(_CHECK, "ok", f"{where}: {count:,} passages, as in the database")
    else:
        yield Finding(
            _CHECK, "warning", f"{where}: {count:,} passages, {published_count:,} in the database", _FILL
        )


def used_identity(session: Session) -> str | None:
    """The identity, if the engine was ever filled from this database and not cleared since."""
    used = session.scalar(select(MarkRecord.version).limit(1)) is not None
    return known_identity(session) if used else None


def left_in_engine(
    platform: Platform, session: Session, knowledge_base_id: str, document_id: str | None
) -> int:
    """How many points of a deleted document or knowledge base the engine still has. Raises EngineAway."""
    identity = used_identity(session)
    if identity is None:
        return 0
    engine = MilvusEngine(platform.settings_of(MilvusSettings), identity)
    try:
        if document_id is not None:
            return off_the_loop(partial(engine.count, f"owner == {json.dumps(document_id)}"))
        states = off_the_loop(engine.states)
        collections = searched_collections(session)
        gone = [
            collection_id
            for collection_id, state in states.items()
            if collection_id not in collections
            and (state.reached is None or knowledge_base_id in state.reached.name)
        ]
        return sum(off_the_loop(partial(engine.count, f"collection == {one}")) for one in gone)
    finally:
        off_the_loop(engine.close)
