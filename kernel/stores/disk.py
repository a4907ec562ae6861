"""Free space on the disks that the platform writes to."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Iterable
from pathlib import Path

from sqlalchemy.engine import make_url

from kernel.bounded import in_abandonable_thread
from kernel.errors import InsufficientStorage, Unhealthy
from kernel.machine_faults import SENTENCES

_MB = 1024 * 1024


class DiskSpace:
    """The disks of some folders; short of space if less than `min_free_mb` is free on one of them.

    The reserve lets a server with a full disk still refuse uploads, delete, and report what is wrong.
    """

    def __init__(self, folders: Iterable[Path], min_free_mb: int) -> None:
        self._folders = tuple(dict.fromkeys(folders))
        self._min_free = min_free_mb * _MB
        self._looking: asyncio.Task[str | None] | None = None

    def free_bytes(self) -> int:
        """Bytes that this process can still write on the fullest disk. Fast enough for the event loop."""
        return min(map(_free, self._folders))

    def is_short(self) -> bool:
        """Whether a disk is full or nearly full."""
        return self.free_bytes() < max(self._min_free, 1)

    def require(self) -> None:
        """Raise InsufficientStorage if a disk is short of space."""
        if self.is_short():
            raise InsufficientStorage(SENTENCES["disk_full"])

    def shortage(self) -> str | None:
        """How full a disk that is short of space is, to complete "the disk is …"; None if none is."""
        if not self.is_short():
            return None
        free = self.free_bytes() // _MB
        if free == 0:
            return "full"
        kept = self._min_free // _MB
        return f"almost full: {free} MB are free, and PLATFORM_MIN_FREE_DISK_MB keeps {kept} MB"

    def can_be_written(self) -> bool:
        """Whether the disks can be written at all: Linux makes one with errors read-only."""
        return all(map(_can_be_written, self._folders))

    async def check(self) -> None:
        """A health check. A disk may hang: all calls wait for the same thread, and a stop for none."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(in_abandonable_thread(self._trouble), name="disk check")
        trouble = await asyncio.shield(self._looking)
        if trouble is not None:
            raise Unhealthy(f"the server's disk {trouble}")

    def _trouble(self) -> str | None:
        if not self.can_be_written():
            return "can't be written; dmesg may say why"
        shortage = self.shortage()
        return None if shortage is None else f"is {shortage}; free some space"


def folders_written(home: Path, sqlalchemy_url: str) -> list[Path]:
    """The home, and the folder of an SQLite database outside it."""
    url = make_url(sqlalchemy_url)
    is_file = url.get_backend_name() == "sqlite" and url.database not in (None, "", ":memory:")
    return [home, Path(str(url.database)).absolute().parent] if is_file else [home]


def _free(folder: Path) -> int:
    """Free bytes on the disk of `folder` or of its nearest existing parent."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def _can_be_written(folder: Path) -> bool:
    """Tested by setting a time stamp: the flags of statvfs(2) don't show that ext4 made a disk read-only."""
    try:
        os.utime(folder)
    except OSError as error:  # a folder that doesn't exist yet, or isn't ours, tells nothing about the disk
        return error.errno not in (errno.EROFS, errno.EIO)
    return True
