"""A plugin's blob store, watched: failures of its own name the plugin."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from sqlalchemy.exc import SQLAlchemyError

from kernel.errors import ANY_ERROR, PlatformError, Unavailable
from kernel.process.machine_faults import is_machine_fault
from kernel.stores.protocols import BlobStore, Staged

log = logging.getLogger("platform.stores")


class BlobStoreFailed(Unavailable):
    code = "blob_store_failed"

    def __init__(self, plugin: str) -> None:
        super().__init__(f"The blob store of the plugin '{plugin}' failed; the server's log says why")


class _Pieces:
    """What a client sends, and the error that ended it, if any: that error is not the store's."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self.broke: BaseException | None = None

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._chunks)
        except StopAsyncIteration:
            raise
        except BaseException as error:  # boundary: the client's body; its error is passed on unchanged
            self.broke = error
            raise


def watched_blobs(store: BlobStore, plugin: str) -> BlobStore:
    """The same store; failures of its own raise BlobStoreFailed.

    Its methods are replaced one by one, since callers check its class for what else it can do.
    """
    stage, local, sweep = store.stage, store.local, store.sweep

    async def watched_stage(chunks: AsyncIterator[bytes], limit: int) -> Staged:
        pieces = _Pieces(chunks)
        with _naming(plugin, "stage", pieces):
            return await stage(pieces, limit)

    async def watched_local(sha256: str) -> Path:
        with _naming(plugin, "local"):
            return await local(sha256)

    async def watched_sweep() -> int:
        with _naming(plugin, "sweep"):
            return await sweep()

    watched = {
        "stage": watched_stage,
        "keep": _naming(plugin, "keep")(store.keep),
        "release": _naming(plugin, "release")(store.release),
        "local": watched_local,
        "sweep": watched_sweep,
    }
    if not hasattr(store, "__dict__"):  # its class has slots only
        return cast(BlobStore, SimpleNamespace(**watched))
    vars(store).update(watched)  # also in a frozen dataclass
    return store


@contextmanager
def _naming(plugin: str, what: str, pieces: _Pieces | None = None) -> Iterator[None]:
    try:
        yield
    except (PlatformError, SQLAlchemyError, OSError):
        raise  # an answer, or a fault of the database, disk or network
    except ANY_ERROR as error:  # boundary: another author's store
        if is_machine_fault(error) or (pieces is not None and error is pieces.broke):
            raise
        log.exception("the blob store of the plugin '%s' failed in %s", plugin, what)
        raise BlobStoreFailed(plugin) from None
