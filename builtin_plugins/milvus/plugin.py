"""The milvus plugin: searches vectors and words in Milvus, chosen by ``PLATFORM_VECTOR_STORE=milvus``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from builtin_plugins.milvus.engine import Engine
from builtin_plugins.milvus.identity import identity_of
from builtin_plugins.milvus.models import Base
from builtin_plugins.milvus.settings import MilvusSettings
from builtin_plugins.milvus.store import MilvusStore
from builtin_plugins.vectors.api import VECTOR_STORE
from kernel.sdk import Plugin, StoreNeeds, StoreOffer, Tables, hookimpl


class MilvusPlugin(Plugin):
    """Brings the store; does nothing unless a setting chooses it."""

    name = "milvus"
    version = "0.1.0"
    description = "Searches vectors and words in Milvus"
    author = "Platform"
    capabilities = ("storage",)
    requires = ("vectors",)

    @hookimpl
    def register_settings(self) -> type[MilvusSettings]:
        return MilvusSettings

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(Base, Path(__file__).parent / "migrations")

    @hookimpl
    def register_stores(self) -> Sequence[StoreOffer[Any]]:
        return [StoreOffer(VECTOR_STORE, "milvus", open_store)]


@asynccontextmanager
async def open_store(needs: StoreNeeds) -> AsyncIterator[MilvusStore]:
    """The store; a process that serves also follows changes in the background."""
    identity = await identity_of(needs.database)
    store = MilvusStore(needs.database, Engine(needs.settings_of(MilvusSettings), identity))
    if needs.serving:
        await store.start()
    try:
        yield store
    finally:
        await store.close()
