"""A blob store as on another machine: contents are packed there, and brought here to be read."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

from sqlalchemy import delete, select

from kernel.sdk import Database, PayloadTooLarge, Staged, Unit

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

    async def keep(self, unit: Unit, staged: Staged, holder: str) -> None:
        await unit.lock(f"shelf:{staged.sha256}")
        await unit.session.merge(ShelfHolder(sha256=staged.sha256, holder=holder))
        content = await asyncio.to_thread(staged.path.read_bytes)
        await asyncio.to_thread(self._place(staged.sha256).write_bytes, gzip.compress(content))
        staged.discard()

    async def release(self, unit: Unit, sha256: str, holder: str) -> None:
        condition = (ShelfHolder.sha256 == sha256) & (ShelfHolder.holder == holder)
        await unit.session.execute(delete(ShelfHolder).where(condition))

        async def let_go() -> None:
            await self._remove_unheld(sha256)

        unit.after_commit(let_go)

    async def local(self, sha256: str) -> Path:
        path = self.here / sha256
        if not path.exists():
            packed = await asyncio.to_thread(self._place(sha256).read_bytes)
            await asyncio.to_thread(path.write_bytes, gzip.decompress(packed))
        return path

    async def sweep(self) -> int:
        return sum([await self._remove_unheld(path.stem) for path in self.packed.glob("*.gz")])

    async def _remove_unheld(self, sha256: str) -> bool:
        """Files come and go under the lock alone, so that an upload and a deletion can't cross."""
        async with self._database.unit() as unit:
            await unit.lock(f"shelf:{sha256}")
            held = await unit.session.scalar(select(ShelfHolder.holder).where(ShelfHolder.sha256 == sha256))
            if held is None:
                self._place(sha256).unlink(missing_ok=True)
                (self.here / sha256).unlink(missing_ok=True)
            return held is None

    def _place(self, sha256: str) -> Path:
        return self.packed / f"{sha256}.gz"
