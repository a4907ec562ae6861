"""The vectors plugin: keeps points in the platform's database and searches them with FAISS and BM25."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from builtin_plugins.vectors.api import VECTOR_STORE
from builtin_plugins.vectors.models import Base
from builtin_plugins.vectors.settings import VectorSettings
from builtin_plugins.vectors.store import SqlVectorStore
from kernel.sdk import Plugin, StoreNeeds, StoreOffer, Tables, hookimpl


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
    def register_stores(self) -> Sequence[StoreOffer[Any]]:
        return [StoreOffer(VECTOR_STORE, "faiss", open_store)]


@asynccontextmanager
async def open_store(needs: StoreNeeds) -> AsyncIterator[SqlVectorStore]:
    """The store; a process that serves also continues the removal of dropped collections."""
    store = SqlVectorStore(needs.database)
    if needs.serving:
        await store.start()
    try:
        yield store
    finally:
        await store.close()
