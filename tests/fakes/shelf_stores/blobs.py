"""A blob store as on another machine: contents are packed there, and brought here to be read."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

from sqlalchemy import delete, select

from kernel.sdk import Database, PayloadTooLarge, Unit, off_the_loop
from kernel.sdk.storage import Staged

from .models import ShelfHolder


class ShelfBlobs:
    """A `BlobStore` of packed files; who holds what is told by rows."""

    def __init__(self, database: Database, folder: Path) -> None:
        self._database = database
        self.packed = folder / "packed"
        self.here = folder / "here"
        for made in (self.packed, self.here):
            made.mkdir(parents=True, exist_ok=True)

    async def stage(self, chunks: AsyncIterator[bytes], limit: int) -> Staged:
        content = b"".join([piece async for piece in chunks])
        if len(content) > limit:
            raise PayloadTooLarge()
        path = self.here / f"{uuid.uuid4().hex}.staged"
        await asyncio.to_thread(path.write_bytes, content)
        return Staged(path, hashlib.sha256(content).hexdigest(), len(content))

    def keep(self, unit: Unit, staged: Staged, holder: str) -> None:
        unit.lock(f"shelf:{staged.sha256}")
        unit.session.merge(ShelfHolder(sha256=staged.sha256, holder=holder))
        off_the_loop(lambda: self._pack(staged))

    def release(self, unit: Unit, sha256: str, holder: str) -> None:
        condition = (ShelfHolder.sha256 == sha256) & (ShelfHolder.holder == holder)
        unit.session.execute(delete(ShelfHolder).where(condition))

        async def let_go() -> None:
            await self._database.write(self._remove_unheld, sha256)

        unit.after_commit(let_go)

    async def local(self, sha256: str) -> Path:
        path = self.here / sha256
        if not path.exists():
            packed = await asyncio.to_thread(self._place(sha256).read_bytes)
            await asyncio.to_thread(path.write_bytes, gzip.decompress(packed))
        return path

    async def sweep(self) -> int:
        names = [path.stem for path in self.packed.glob("*.gz")]
        return sum([await self._database.write(self._remove_unheld, name) for name in names])

    def _remove_unheld(self, unit: Unit, sha256: str) -> bool:
        """Files come and go under the lock alone, so that an upload and a deletion can't cross."""
        unit.lock(f"shelf:{sha256}")
        held = unit.session.scalar(select(ShelfHolder.holder).where(ShelfHolder.sha256 == sha256))
        if held is None:
            off_the_loop(lambda: self._unlink(sha256))
        return held is None

    def _pack(self, staged: Staged) -> None:
        self._place(staged.sha256).write_bytes(gzip.compress(staged.path.read_bytes()))
        staged.discard()

    def _unlink(self, sha256: str) -> None:
        for path in (self._place(sha256), self.here / sha256):
            path.unlink(missing_ok=True)

    def _place(self, sha256: str) -> Path:
        return self.packed / f"{sha256}.gz"
