"""The vectors plugin: keeps points in the platform's database and searches them with FAISS and BM25."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from builtin_plugins.vectors.api import VECTOR_STORE, VECTORS
from builtin_plugins.vectors.index_checks import find_indexes
from builtin_plugins.vectors.index_folders import index_folders
from builtin_plugins.vectors.models import Base
from builtin_plugins.vectors.settings import VectorSettings
from builtin_plugins.vectors.store import SqlVectorStore
from kernel.sdk import (
    Diagnostic,
    HealthCheck,
    NotConfigured,
    Platform,
    Plugin,
    StoreNeeds,
    StoreOffer,
    Tables,
    Unhealthy,
    hookimpl,
)


class VectorsPlugin(Plugin):
    """Brings the kind of store, and the one that works on every database."""

    name = "vectors"
    version = "0.1.0"
    description = "Searches texts by meaning and by words"
    author = "Platform"
    capabilities = ("storage",)
    requires = ("inference",)

    @hookimpl
    def register_settings(self) -> type[VectorSettings]:
        return VectorSettings

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(Base, Path(__file__).parent / "migrations")

    @hookimpl
    def register_health_checks(self) -> Sequence[HealthCheck]:
        return [HealthCheck("search_indexes", check_indexes)]

    @hookimpl
    def register_diagnostics(self) -> Sequence[Diagnostic]:
        return [Diagnostic("rows", find_indexes)]

    @hookimpl
    def register_stores(self) -> Sequence[StoreOffer[Any]]:
        return [StoreOffer(VECTOR_STORE, "faiss", open_store)]


@asynccontextmanager
async def open_store(needs: StoreNeeds) -> AsyncIterator[SqlVectorStore]:
    """The store; a process that serves also continues the removal of dropped collections."""
    store = SqlVectorStore(needs.database, folders=index_folders(needs))
    if needs.serving:
        await store.start()
    try:
        yield store
    finally:
        await store.close()


async def check_indexes(platform: Platform) -> None:
    """Whether search indexes can be saved."""
    store = platform.resource(VECTORS)
    if not isinstance(store, SqlVectorStore) or store.folders is None:
        raise NotConfigured
    if store.folders.fault is not None:
        raise Unhealthy(f"{store.folders.fault}; searches work, but the first after a start is slow")
