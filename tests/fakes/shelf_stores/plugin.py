"""What the plugin offers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from builtin_plugins.vectors.api import VECTOR_STORE
from kernel.sdk import Plugin, StoreNeeds, StoreOffer, Tables, hookimpl
from kernel.sdk.storage import BLOB_STORE, CACHE_STORE

from .blobs import ShelfBlobs
from .cache import ShelfCache
from .models import Base
from .vectors import ShelfVectors


class ShelfPlugin(Plugin):
    """Brings one store of each kind."""

    name = "shelf"
    version = "1"
    requires = ("vectors",)

    def __init__(self) -> None:
        self.closed: list[str] = []

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(Base, Path(__file__).parent / "migrations")

    @hookimpl
    def register_stores(self) -> Sequence[StoreOffer[Any]]:
        return [
            StoreOffer(VECTOR_STORE, "shelf", self._vectors),
            StoreOffer(BLOB_STORE, "shelf", self._blobs),
            StoreOffer(CACHE_STORE, "shelf", self._cache),
        ]

    @asynccontextmanager
    async def _vectors(self, needs: StoreNeeds) -> AsyncIterator[ShelfVectors]:
        yield ShelfVectors(needs.database)
        self.closed.append("vectors")

    @asynccontextmanager
    async def _blobs(self, needs: StoreNeeds) -> AsyncIterator[ShelfBlobs]:
        yield ShelfBlobs(needs.database, needs.settings.home / "shelf")
        self.closed.append("blobs")

    @asynccontextmanager
    async def _cache(self, needs: StoreNeeds) -> AsyncIterator[ShelfCache]:
        yield ShelfCache()
        self.closed.append("cache")
