"""Opens a platform's stores at its start: those that the settings name, otherwise the kernel's own."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import TypeVar

from sqlalchemy.exc import SQLAlchemyError

from kernel.db.startup import unusable
from kernel.errors import ANY_ERROR, StartupError
from kernel.plugins.resource_keys import ResourceKey, Resources
from kernel.stores.blobs import FileBlobs
from kernel.stores.cache import MemoryCache
from kernel.stores.offers import BLOB_STORE, CACHE_STORE, OfferedStores, StoreKind, StoreNeeds, StoreOffer
from kernel.stores.protocols import BlobStore, Cache

T = TypeVar("T")


@dataclass(frozen=True)
class Stores:
    """The stores that every platform has."""

    blobs: BlobStore
    cache: Cache


def own_stores(needs: StoreNeeds) -> Stores:
    """The kernel's own, without any query or connection: for commands that only explain."""
    return Stores(_own_blobs(needs), MemoryCache())


class StoreOpening:
    """Opens the stores of one platform."""

    def __init__(self, needs: StoreNeeds, offered: OfferedStores, stack: AsyncExitStack) -> None:
        """`stack` closes what is opened."""
        self._needs = needs
        self._offered = offered
        self._stack = stack

    async def open_early_blobs(self) -> BlobStore | None:
        """The blob store that the settings name, if it can be used before the migrations.

        Raises StartupError.
        """
        chosen = self._offered.chosen(BLOB_STORE, self._needs)
        if chosen is None:
            return _own_blobs(self._needs)
        plugin, offer = chosen
        if not offer.early:
            return None
        store: BlobStore = await self._entered(plugin, offer, self._needs, self._stack)
        return store

    async def open(self, resources: Resources, *, blobs: BlobStore | None) -> Stores:
        """Open the stores that the settings name, also those of the kinds that plugins brought.

        The latter become resources. `blobs` is the result of `open_early_blobs`. Raises StartupError: an
        unavailable store stops the start.
        """
        cache = await self._open(CACHE_STORE)
        for kind in self._offered.plugin_kinds(self._needs):
            resources.add(kind.key, await self._open(kind))
        if blobs is None:
            blobs = await self._open(BLOB_STORE)
        return Stores(
            blobs=_own_blobs(self._needs) if blobs is None else blobs,
            cache=MemoryCache() if cache is None else cache,
        )

    async def prepare(self) -> None:
        """Let the chosen stores of plugins' kinds prepare the database. Raises StartupError."""
        needs = replace(self._needs, serving=False, migrating=True)
        for kind in self._offered.plugin_kinds(needs):
            chosen = self._offered.chosen(kind, needs)
            if chosen is not None:
                async with AsyncExitStack() as stack:
                    await self._entered(*chosen, needs, stack)

    async def _open(self, kind: StoreKind[T]) -> T | None:
        chosen = self._offered.chosen(kind, self._needs)
        if chosen is None:
            return None
        store: T = await self._entered(*chosen, self._needs, self._stack)
        return store

    async def _entered(
        self, plugin: str, offer: StoreOffer[T], needs: StoreNeeds, stack: AsyncExitStack
    ) -> T:
        seconds = needs.settings.plugin_start_timeout
        what = f"the {offer.kind.name} '{offer.name}' of the plugin '{plugin}'"
        try:
            async with asyncio.timeout(seconds) as limit:
                store = await stack.enter_async_context(offer.open(needs))
        except StartupError:
            raise
        except SQLAlchemyError as error:
            raise unusable(error, needs.database.url) from error
        except ANY_ERROR as error:  # boundary: another author's store
            if isinstance(error, TimeoutError) and limit.expired():
                raise StartupError(f"{what} did not open within {seconds:g} s") from error
            raise StartupError(f"{what} can't be opened: {type(error).__name__}: {error}") from error
        return store if offer.kind.supervised is None else offer.kind.supervised(store, plugin)


STORE_OPENING: ResourceKey[StoreOpening] = ResourceKey("store_opening")


def _own_blobs(needs: StoreNeeds) -> FileBlobs:
    return FileBlobs(needs.database, needs.settings.home / "blobs", needs.disk)
