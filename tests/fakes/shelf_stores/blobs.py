"""A blob store as on another machine: contents are packed there, and brought here to be read."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

from kernel.sdk import PayloadTooLarge, Staged, Unit


class ShelfBlobs:
    """A `BlobStore` of packed files; who holds what is a list beside each."""

    def __init__(self, folder: Path) -> None:
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
        content = await asyncio.to_thread(staged.path.read_bytes)
        await asyncio.to_thread(self._place(staged.sha256).write_bytes, gzip.compress(content))
        staged.discard()

        async def hold() -> None:
            self._holders(staged.sha256, add=holder)

        unit.after_commit(hold)

    async def release(self, unit: Unit, sha256: str, holder: str) -> None:
        await unit.lock(f"shelf:{sha256}")

        async def let_go() -> None:
            if not self._holders(sha256, drop=holder):
                self._remove(sha256)

        unit.after_commit(let_go)

    async def local(self, sha256: str) -> Path:
        path = self.here / sha256
        if not path.exists():
            packed = await asyncio.to_thread(self._place(sha256).read_bytes)
            await asyncio.to_thread(path.write_bytes, gzip.decompress(packed))
        return path

    async def sweep(self) -> int:
        strays = [path.stem for path in self.packed.glob("*.gz") if not self._holders(path.stem)]
        for sha256 in strays:
            self._remove(sha256)
        return len(strays)

    def _place(self, sha256: str) -> Path:
        return self.packed / f"{sha256}.gz"

    def _remove(self, sha256: str) -> None:
        for path in (self._place(sha256), self.here / sha256, self.packed / f"{sha256}.holders"):
            path.unlink(missing_ok=True)

    def _holders(self, sha256: str, *, add: str | None = None, drop: str | None = None) -> set[str]:
        path = self.packed / f"{sha256}.holders"
        holders = set(path.read_text().splitlines()) if path.exists() else set()
        if add is None and drop is None:
            return holders
        holders = (holders | ({add} if add else set())) - {drop}
        path.write_text("\n".join(sorted(holders)))
        return holders
