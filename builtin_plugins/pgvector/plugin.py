"""The pgvector plugin: searches vectors in PostgreSQL, chosen by ``PLATFORM_VECTOR_STORE``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from builtin_plugins.pgvector.setup import Choice, open_vector_store
from builtin_plugins.vectors.api import VECTOR_STORE, SqlVectorStore, VectorSettings, index_folders
from kernel.sdk import Plugin, StoreNeeds, StoreOffer, Tables, hookimpl, plugin_base


class PgVectorPlugin(Plugin):
    """Brings the store. Its table depends on the server's features, so no migration makes it."""

    name = "pgvector"
    version = "0.1.0"
    description = "Searches vectors in PostgreSQL with pgvector"
    author = "Platform"
    capabilities = ("storage",)
    requires = ("vectors",)

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(plugin_base(self.name), Path(__file__).parent / "migrations", ("pgvector_point",))

    @hookimpl
    def register_stores(self) -> Sequence[StoreOffer[Any]]:
        return [StoreOffer(VECTOR_STORE, "pgvector", open_store, suits=suits)]


def suits(needs: StoreNeeds) -> bool:
    """Whether `auto` means this store; if the server turns out to lack the extension, FAISS searches."""
    return not needs.database.is_sqlite


@asynccontextmanager
async def open_store(needs: StoreNeeds) -> AsyncIterator[SqlVectorStore]:
    """The store that the setting stands for on this server. Raises StartupError."""
    choice: Choice = "pgvector" if needs.settings_of(VectorSettings).store == "pgvector" else "auto"
    store = await open_vector_store(
        needs.database, choice, apply=needs.migrating, folders=index_folders(needs)
    )
    if needs.serving:
        await store.start()
    try:
        yield store
    finally:
        await store.close()
