"""The interfaces of stores. Writes join the caller's transaction.

A method that takes a unit is a plain function, called within `Database.write`: it awaits nothing, and uses
`off_the_loop` for slow work other than statements, such as placing a file.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kernel.db.engine import Unit


@dataclass(frozen=True)
class Staged:
    """Content that has been received, hashed, measured and synced, but is not kept yet."""

    path: Path
    sha256: str
    size: int

    def discard(self) -> None:
        """Delete it, unless it was kept."""
        self.path.unlink(missing_ok=True)


class BlobStore(Protocol):
    """Contents by the SHA-256 of their bytes. Checked by `BlobStoreConformance` in `kernel.testing`."""

    async def stage(self, chunks: AsyncIterator[bytes], limit: int) -> Staged:
        """Write the stream to a synced temporary file.

        Raises PayloadTooLarge beyond `limit` bytes, InsufficientStorage if there is no space for it.
        """
        ...

    def keep(self, unit: Unit, staged: Staged, holder: str) -> None:
        """Make the content a blob that `holder` refers to; it is durable when the unit commits."""
        ...

    def release(self, unit: Unit, sha256: str, holder: str) -> None:
        """Drop the holder's reference; with the last one, the content is removed after the commit."""
        ...

    async def local(self, sha256: str) -> Path:
        """A file with the content, for reading only; it exists as long as somebody holds the content."""
        ...

    async def sweep(self) -> int:
        """Remove what killed processes left behind; returns how many contents. Called at each start."""
        ...


class Cache(Protocol):
    """Short-lived shared state. Losing it loses no data."""

    async def increment(self, key: str, window: int) -> tuple[int, int]:
        """Add one to the count of `key` in the current fixed window of `window` seconds.

        Returns (count, seconds left in the window). Raises CacheUnavailable.
        """
        ...

    async def count(self, key: str, window: int) -> int:
        """The count of `increment` in the current window. Raises CacheUnavailable."""
        ...

    async def ping(self) -> None:
        """Raise CacheUnavailable if the store does not answer."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


class CacheUnavailable(Exception):
    """The cache store does not respond."""
