"""The disks that the platform writes to: their free space, writes that survive a loss of power, and temporary
files that are removed even if their process was killed.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import re
import shutil
import socket
import time
import uuid
from collections.abc import Iterable
from pathlib import Path

from sqlalchemy.engine import make_url

from kernel.errors import InsufficientStorage, Unhealthy
from kernel.libs.background import in_abandonable_thread
from kernel.observe.metrics import Metrics
from kernel.process.machine_faults import SENTENCES

_MB = 1024 * 1024


class DiskSpace:
    """The disks of some folders; short of space if less than `min_free_mb` is free on one of them.

    The reserve lets a server with a full disk still refuse uploads, delete, and report what is wrong.
    """

    def __init__(self, folders: Iterable[Path], min_free_mb: int) -> None:
        self._folders = tuple(dict.fromkeys(folders))
        self._min_free = min_free_mb * _MB
        self._looking: asyncio.Task[str | None] | None = None
        self._measuring: asyncio.Task[bool] | None = None

    def free_bytes(self) -> int:
        """Bytes that this process can still write on the fullest disk. Blocks while a disk hangs."""
        return min(map(_free, self._folders))

    def is_short(self) -> bool:
        """Whether a disk is full or nearly full. Blocks while a disk hangs."""
        return self.free_bytes() < max(self._min_free, 1)

    async def runs_short(self) -> bool:
        """`is_short` without blocking the event loop: a disk that hangs makes only the caller wait."""
        if self._measuring is None or self._measuring.done():
            self._measuring = asyncio.create_task(in_abandonable_thread(self.is_short), name="disk space")
        return await asyncio.shield(self._measuring)

    async def require(self) -> None:
        """Raise InsufficientStorage if a disk is short of space."""
        if await self.runs_short():
            raise InsufficientStorage(SENTENCES["disk_full"])

    def shortage(self) -> str | None:
        """How full a disk that is short of space is, to complete "the disk is …"; None if none is."""
        if not self.is_short():
            return None
        free = self.free_bytes() // _MB
        if free == 0:
            return "full"
        reserve = self._min_free // _MB
        return f"almost full: {free} MB are free, and PLATFORM_MIN_FREE_DISK_MB keeps {reserve} MB"

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

    def offer_figures(self, metrics: Metrics) -> None:
        """Show the free space at `/metrics`."""
        free = metrics.gauge("disk_free_bytes", "Free space on the fullest disk that the platform writes to.")

        async def read() -> None:
            free.set(await in_abandonable_thread(self.free_bytes))

        metrics.on_scrape(read)

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
    stats = os.statvfs(folder)
    return stats.f_bavail * stats.f_frsize


def _can_be_written(folder: Path) -> bool:
    """Tested by setting a time stamp: the flags of statvfs(2) don't show that ext4 made a disk read-only."""
    try:
        os.utime(folder)
    except OSError as error:  # a folder that doesn't exist yet, or isn't ours, tells nothing about the disk
        return error.errno not in (errno.EROFS, errno.EIO)
    return True


def sync(path: Path) -> None:
    """Sync a file's content or a folder's entries to disk. Blocks."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_NAME = re.compile(r"([0-9a-f]{12})-([0-9]+)-[0-9a-f]{32}")
_FORGOTTEN = 24 * 3600.0


class Scratch:
    """A folder of temporary files, each named after the process that made it.

    The folder may be shared with other machines and containers, whose process ids mean nothing here: their
    files are kept for a day.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._place = _place()

    def new(self, suffix: str = "") -> Path:
        """A path for a new file in the (created) folder; the file does not exist yet."""
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder / f"{self._place}-{os.getpid()}-{uuid.uuid4().hex}{suffix}"

    def sweep(self) -> int:
        """Remove the files and folders of dead processes; returns how many."""
        paths = list(self._folder.iterdir()) if self._folder.is_dir() else []
        stale = [path for path in paths if self._left_behind(path)]
        for path in stale:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        return len(stale)

    def _left_behind(self, path: Path) -> bool:
        name = _NAME.match(path.name)
        try:
            if name is not None and name[1] == self._place:
                return _is_gone(int(name[2]), path)
            ours = name is not None or path.is_file()
            return ours and time.time() - path.stat().st_mtime > _FORGOTTEN
        except FileNotFoundError:
            return False


def _place() -> str:
    """Identifies this container and this boot of the machine, within which a process id is unique."""
    parts = [socket.gethostname()]
    for source in (Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")):
        try:
            parts.append(str(source.readlink()) if source.is_symlink() else source.read_text())
        except OSError:
            parts.append("")
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=6).hexdigest()


def _is_gone(pid: int, path: Path) -> bool:
    """Whether the process that made the file is dead; a later one may have its id."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}").stat().st_ctime > path.stat().st_mtime + 1
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        return False
