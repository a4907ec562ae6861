"""Opens a platform's stores at its start: those that the settings name, otherwise the kernel's own."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TypeVar, cast

from sqlalchemy.exc import SQLAlchemyError

from kernel.db.engine import Database
from kernel.db.startup import unusable
from kernel.errors import ANY_ERROR, StartupError
from kernel.settings import KernelSettings
from kernel.stores.blobs import FileBlobs
from kernel.stores.cache import open_cache
from kernel.stores.offered import watched
from kernel.stores.offered_blobs import watched_blobs
from kernel.stores.offers import (
    BLOB_STORE,
    CACHE_STORE,
    VECTOR_STORE,
    OfferedStores,
    StoreKind,
    StoreNeeds,
    StoreOffer,
)
from kernel.stores.pgvector_setup import Choice, open_vector_store
from kernel.stores.points import SqlVectorStore
from kernel.stores.protocols import BlobStore, Cache, VectorStore

T = TypeVar("T")


@dataclass(frozen=True)
class Stores:
    """A platform's stores."""

    vectors: VectorStore
    blobs: BlobStore
    cache: Cache


def own_stores(needs: StoreNeeds) -> Stores:
    """The kernel's own, without any query or connection: for commands that only explain."""
    return Stores(SqlVectorStore(needs.database), _own_blobs(needs), _own_cache(needs))


async def open_stores(
    needs: StoreNeeds,
    offered: OfferedStores,
    stack: AsyncExitStack,
    *,
    blobs: BlobStore | None,
    apply: bool,
    serving: bool,
) -> Stores:
    """Open the stores that the settings name; `stack` closes them. With `apply`, pgvector is set up.

    `blobs` is the result of `open_early_blobs`. A `serving` process builds the indexes that grown collections
    need. Raises StartupError: an unavailable store stops the start.
    """
    cache = await _offered(CACHE_STORE, needs, offered, stack)
    if cache is None:
        cache = _own_cache(needs)
        stack.push_async_callback(cache.close)
    vectors = await _offered(VECTOR_STORE, needs, offered, stack)
    if vectors is None:
        vectors = own = await _own_vectors(needs.database, needs.settings, apply=apply)
        stack.push_async_callback(own.close)
        if serving:
            await own.start()
    elif chosen := offered.chosen(VECTOR_STORE, needs.settings):
        vectors = watched(vectors, plugin=chosen[0])
    if blobs is None:
        blobs = await _offered(BLOB_STORE, needs, offered, stack)
        if blobs is not None and (chosen_blobs := offered.chosen(BLOB_STORE, needs.settings)):
            blobs = watched_blobs(blobs, plugin=chosen_blobs[0])
    return Stores(vectors, _own_blobs(needs) if blobs is None else blobs, cache)


async def prepare_own_vectors(database: Database, settings: KernelSettings) -> None:
    """Set up pgvector if the kernel's own vector store is chosen. Raises StartupError."""
    if settings.vector_store in VECTOR_STORE.own:
        await (await _own_vectors(database, settings, apply=True)).close()


async def _own_vectors(database: Database, settings: KernelSettings, *, apply: bool) -> SqlVectorStore:
    try:
        return await open_vector_store(database, cast(Choice, settings.vector_store), apply=apply)
    except (SQLAlchemyError, OSError) as error:
        raise unusable(error, database.url) from error


async def _offered(
    kind: StoreKind[T], needs: StoreNeeds, offered: OfferedStores, stack: AsyncExitStack
) -> T | None:
    chosen = offered.chosen(kind, needs.settings)
    if chosen is None:
        return None
    plugin, offer = chosen
    return await _entered(plugin, offer, needs, stack)


async def _entered(plugin: str, offer: StoreOffer[T], needs: StoreNeeds, stack: AsyncExitStack) -> T:
    seconds = needs.settings.plugin_start_timeout
    what = f"the {offer.kind.name} '{offer.name}' of the plugin '{plugin}'"
    try:
        async with asyncio.timeout(seconds) as limit:
            return await stack.enter_async_context(offer.open(needs))
    except StartupError:
        raise
    except ANY_ERROR as error:  # boundary: another author's store
        if isinstance(error, TimeoutError) and limit.expired():
            raise StartupError(f"{what} did not open within {seconds:g} s") from error
        raise StartupError(f"{what} can't be opened: {type(error).__name__}: {error}") from error


async def open_early_blobs(
    needs: StoreNeeds, offered: OfferedStores, stack: AsyncExitStack
) -> BlobStore | None:
    """The blob store that the settings name, if it can be used before the migrations. Raises StartupError."""
    chosen = offered.chosen(BLOB_STORE, needs.settings)
    if chosen is None:
        return _own_blobs(needs)
    plugin, offer = chosen
    if not offer.early:
        return None
    return watched_blobs(await _entered(plugin, offer, needs, stack), plugin)


def _own_blobs(needs: StoreNeeds) -> FileBlobs:
    return FileBlobs(needs.database, needs.settings.home / "blobs", needs.disk)


def _own_cache(needs: StoreNeeds) -> Cache:
    redis = needs.settings.redis_url
    address = redis.get_secret_value() if redis else None
    return open_cache(address, needs.database, needs.settings.workers)
