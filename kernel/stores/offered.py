"""A plugin's vector store, watched: no search waits forever, and a failure names the plugin."""

from __future__ import annotations

import asyncio
import logging
import math
from typing import Any, cast

from kernel.db.outages import is_database_outage
from kernel.errors import ANY_ERROR, PlatformError, Unavailable
from kernel.hook_types import PROMPTLY
from kernel.machine_faults import is_machine_fault
from kernel.stores.protocols import EngineMismatch, Hit, Query, VectorStore

log = logging.getLogger("platform.stores")


class VectorStoreFailed(Unavailable):
    code = "vector_store_failed"

    def __init__(self, plugin: str) -> None:
        super().__init__(f"The vector store of the plugin '{plugin}' failed; the server's log says why")


class _Watched:
    def __init__(self, store: VectorStore, plugin: str, seconds: float) -> None:
        self._store = store
        self._plugin = plugin
        self._seconds = seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def search(self, collection: str, query: Query) -> list[Hit]:
        """See `VectorStore.search`. Raises VectorStoreFailed."""
        try:
            async with asyncio.timeout(self._seconds):
                return [_checked(hit) for hit in await self._store.search(collection, query)]
        except (PlatformError, EngineMismatch):
            raise
        except ANY_ERROR as error:  # boundary: another author's store
            if is_database_outage(error) or is_machine_fault(error):
                raise
            log.exception("the vector store of the plugin '%s' failed in a search", self._plugin)
            raise VectorStoreFailed(self._plugin) from None


def watched(store: VectorStore, plugin: str, seconds: float = PROMPTLY) -> VectorStore:
    """The store, with searches that take at most `seconds` and return hits or raise VectorStoreFailed."""
    return cast(VectorStore, _Watched(store, plugin, seconds))


def _checked(hit: Hit) -> Hit:
    if not isinstance(hit, Hit):
        raise TypeError(f"a search returned a {type(hit).__name__} instead of a Hit")
    if not math.isfinite(hit.score):
        raise ValueError(f"a search returned the score {hit.score}")
    return hit
