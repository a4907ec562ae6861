"""Changes in a folder, as the operating system reports them."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from typing import Final

from builtin_plugins.source_folder.folder import is_temporary
from builtin_plugins.sources.api import SourceFault, SourceMisplaced, SourceUnreachable

_GATHERED_MS: Final = 800
_STEP_MS: Final = 100
_LOOK_MS: Final = 1000
_MOUNTS: Final = Path("/proc/self/mountinfo")
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")
"""How the kernel writes a space, a tab, a line break and a backslash there."""
_REMOTE: Final = (
    "nfs",
    "cifs",
    "smb",
    "afs",
    "9p",
    "fuse.",
    "fuseblk",
    "ceph",
    "lustre",
    "glusterfs",
    "virtiofs",
)
"""Kinds of file systems whose files others change, which is not reported here."""


async def watch_folder(place: Path) -> AsyncGenerator[None]:
    """Yields once it watches, then after changes below a folder, permissions included. Raises SourceFault."""
    kind = await asyncio.to_thread(remote_kind, place)
    if kind is not None:
        raise SourceMisplaced(
            f"The folder is on a file system of the kind {kind}, which does not report what others change; "
            "it is looked through by its schedule"
        )
    notices = _Notices(place)
    notices.start()
    try:
        while True:
            await notices.next()
            yield
    finally:
        await asyncio.to_thread(notices.stop)


def remote_kind(place: Path, mounts: str | None = None) -> str | None:
    """The kind of a remote file system that a folder is on, or that is mounted below it; None if it is local.

    `mounts` is the text of the kernel's list of mounts.
    """
    if mounts is None:
        try:
            mounts = _MOUNTS.read_text(errors="surrogateescape")
        except OSError:
            return None
    holder, holder_kind = Path("/"), None
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        point = Path(_ESCAPED.sub(lambda match: chr(int(match[1], 8)), left.split(" ")[4]))
        kind = right.split()[0]
        if point.is_relative_to(place) and point != place and kind.startswith(_REMOTE):
            return kind
        if place.is_relative_to(point) and point.is_relative_to(holder):
            holder, holder_kind = point, kind
    return holder_kind if holder_kind is not None and holder_kind.startswith(_REMOTE) else None


class _Notices:
    """Waits in its own thread: setting up a large tree takes a while, and a wait has no end."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._loop = asyncio.get_running_loop()
        self._ended = threading.Event()
        self._news = asyncio.Event()
        self._fault: SourceFault | None = None
        self._thread = threading.Thread(target=self._run, name="changes in a folder", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread. Blocks for a moment."""
        self._ended.set()
        self._thread.join()

    async def next(self) -> None:
        """Wait for the first moment, then for a change. Raises SourceFault."""
        await self._news.wait()
        self._news.clear()
        if self._fault is not None:
            raise self._fault

    def _run(self) -> None:
        try:
            self._follow()
        except (OSError, RuntimeError) as error:  # the latter for a limit of the system
            self._fault = SourceUnreachable(f"The system does not report changes of the folder: {error}")
        self._tell()

    def _follow(self) -> None:
        import watchfiles  # processes without such a source do without it

        identity = self._identity()
        is_first = True
        for changes in watchfiles.watch(
            self._place,
            watch_filter=lambda _, path: not self._is_left_out(path),
            debounce=_GATHERED_MS,
            step=_STEP_MS,
            rust_timeout=_LOOK_MS,
            yield_on_timeout=True,
            stop_event=self._ended,
        ):
            if self._identity() != identity:
                raise FileNotFoundError("it was taken away, or another one took its place")
            if changes or is_first:
                self._tell()
            is_first = False

    def _identity(self) -> tuple[int, int]:
        status = self._place.stat()
        return status.st_dev, status.st_ino

    def _is_left_out(self, path: str) -> bool:
        place = Path(path)
        parts = (
            place.relative_to(self._place).parts if place.is_relative_to(self._place) else place.parts[-1:]
        )
        return any(is_temporary(part) for part in parts)

    def _tell(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: its program ends
            self._loop.call_soon_threadsafe(self._news.set)
