"""The blob store: files named by the SHA-256 of their content, synced before they are acknowledged."""

from __future__ import annotations

from pathlib import Path

from kernel.db.engine import Database
from kernel.stores.disk import DiskSpace
from kernel.stores.held import HeldBlobs, StoredBlob
from kernel.stores.protocols import Staged
from kernel.syncing import sync


class FileBlobs(HeldBlobs):
    """Blobs as files under one folder."""

    def __init__(self, database: Database, folder: Path, disk: DiskSpace) -> None:
        super().__init__(database, disk, folder / "staging")
        self.syncs = True
        self._folder = folder
        self._lasting: set[str] = set()
        """Folders that this process has synced itself; it doesn't rely on another process to do that."""

    async def secure(self, staged: Staged) -> None:
        """Nothing is left to do: the file was synced as it was written."""

    async def local(self, sha256: str) -> Path:
        """The path of the content."""
        return self.path(sha256)

    def path(self, sha256: str) -> Path:
        """The path of the content; the file exists while somebody holds it."""
        return self._folder / sha256[:2] / sha256[2:]

    def place(self, staged: Staged) -> None:
        target = self.path(staged.sha256)
        if _has(target, staged.size):
            staged.discard()
        else:
            try:
                staged.path.replace(target)
            except FileNotFoundError:
                target.parent.mkdir(parents=True, exist_ok=True)
                staged.path.replace(target)
        sync(target.parent)  # even if the file is there: whoever placed it may have been killed before
        if target.parent.name not in self._lasting:
            sync(target.parent.parent)
            self._lasting.add(target.parent.name)

    def take_away(self, sha256: str) -> None:
        self.path(sha256).unlink(missing_ok=True)

    def find_stored(self) -> dict[str, StoredBlob]:
        found = {}
        for path in self._folder.glob("??/*"):
            try:
                about = path.stat()
            except FileNotFoundError:
                continue
            found[path.parent.name + path.name] = StoredBlob(about.st_size, about.st_mtime)
        return found


def _has(path: Path, size: int) -> bool:
    """Whether all of the content is there; if not, the next upload of it replaces what is there."""
    try:
        return path.stat().st_size == size
    except FileNotFoundError:
        return False
