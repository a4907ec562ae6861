"""A plugin's vector store, watched: no call is awaited forever, and a failure names the plugin."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

from sqlalchemy.exc import SQLAlchemyError

from builtin_plugins.vectors.protocol import (
    EngineMismatch,
    Hit,
    Query,
    VectorStore,
    WordQuery,
)
from builtin_plugins.vectors.store import SqlVectorStore
from kernel.sdk import ANY_ERROR, PROMPTLY, PlatformError, Unavailable, is_machine_fault
from kernel.sdk.storage import is_database_outage

log = logging.getLogger("platform.stores")

_AWAITED = frozenset({"staged", "points", "vectors", "count"})
_IN_UNITS = frozenset({"ensure", "stage", "publish", "annotate", "remove_group", "drop", "rename"})


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
        member = getattr(self._store, name)
        if name in _AWAITED:
            return partial(self._awaited, name, member)
        return partial(self._in_unit, name, member) if name in _IN_UNITS else member

    async def search(self, collection: str, query: Query) -> list[Hit]:
        """See `VectorStore.search`. Raises VectorStoreFailed."""

        return await self._hits(lambda: self._store.search(collection, query))

    async def search_words(self, collection: str, query: WordQuery) -> list[Hit]:
        """See `VectorStore.search_words`. Raises VectorStoreFailed."""
        return await self._hits(lambda: self._store.search_words(collection, query))

    async def _hits(self, search: Callable[[], Awaitable[list[Hit]]]) -> list[Hit]:
        async def checked() -> list[Hit]:
            return [_checked(hit) for hit in await search()]

        return cast(list[Hit], await self._awaited("a search", checked))

    async def _awaited(self, what: str, ask: Callable[..., Awaitable[Any]], *args: Any, **named: Any) -> Any:
        with self._naming(what):
            async with asyncio.timeout(self._seconds):
                return await ask(*args, **named)

    def _in_unit(self, what: str, write: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """A plain function that hangs can't be ended, so the log names it."""
        timer = threading.Timer(self._seconds, self._tell_that_it_hangs, (what,))
        timer.daemon = True
        timer.start()
        try:
            with self._naming(what, SQLAlchemyError):  # some make the transaction run again
                return write(*args, **named)
        finally:
            timer.cancel()

    @contextmanager
    def _naming(self, what: str, *passing: type[Exception]) -> Iterator[None]:
        """Turn an error that is the plugin's own fault into one that names it."""
        passed: tuple[type[Exception], ...] = (PlatformError, EngineMismatch, *passing)
        try:
            yield
        except passed:
            raise
        except ANY_ERROR as error:  # boundary: another author's store
            if is_database_outage(error) or is_machine_fault(error):
                raise
            log.exception("the vector store of the plugin '%s' failed in %s", self._plugin, what)
            raise VectorStoreFailed(self._plugin) from None

    def _tell_that_it_hangs(self, name: str) -> None:
        log.error(
            "the vector store of the plugin '%s' has been busy in %s for %g s, in a transaction that others "
            "may wait for",
            self._plugin,
            name,
            self._seconds,
        )


def supervised(store: VectorStore, plugin: str, seconds: float = PROMPTLY) -> VectorStore:
    """A plugin's store. An awaited call that fails or takes more than `seconds` raises VectorStoreFailed.

    A method that is called in a unit of work can't be ended; if it takes longer, the log names it.
    """
    if isinstance(store, SqlVectorStore):  # the platform's own, also with another index
        return store
    return cast(VectorStore, _Watched(store, plugin, seconds))


def _checked(hit: Hit) -> Hit:
    if not isinstance(hit, Hit):
        raise TypeError(f"a search returned a {type(hit).__name__} instead of a Hit")
    if not math.isfinite(hit.score):
        raise ValueError(f"a search returned the score {hit.score}")
    return hit
