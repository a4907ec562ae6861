"""A folder of the server: listed and read without ever leaving it."""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Final
from urllib.parse import quote

from builtin_plugins.sources.api import (
    ItemFault,
    ItemVanished,
    Listing,
    ListingEnd,
    ListingIncomplete,
    SourceItem,
    SourceMisplaced,
    SourceUnreachable,
)

_AT_ONCE: Final = 500
_PORTION: Final = 1024 * 1024
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_THROUGH: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TEMPORARY: Final = re.compile(
    r"\..*|~\$.*|#.*#|.*~|.*\.(tmp|temp|part|partial|crdownload|download|sw[op]|lock)|thumbs\.db|desktop\.ini",
    re.IGNORECASE,
)


class FolderSource:
    """Files are known by their path. One that is renamed keeps its number on the disk, size and time."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def documents(self, since: str | None) -> Listing:
        """All files below the folder; there is no shorter way to what has changed."""
        files = self._files()
        while batch := await asyncio.to_thread(lambda: list(islice(files, _AT_ONCE))):
            for item in batch:
                yield item
        yield ListingEnd()

    def _files(self) -> Iterator[SourceItem]:
        """Every file; as deep as folders may be, without a call for each level."""
        levels = [self._entries(self._root, "")]
        while levels:
            entry, path = next(levels[-1], (None, ""))
            if entry is None:
                levels.pop()
            elif entry.is_dir(follow_symlinks=False):
                levels.append(self._entries(Path(entry.path), f"{path}/"))
            elif (item := self._item(entry, path)) is not None:
                yield item

    def _entries(self, folder: Path, above: str) -> Iterator[tuple[os.DirEntry[str], str]]:
        try:
            with os.scandir(folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except FileNotFoundError:
            if not above:
                raise SourceUnreachable("The folder is not there") from None
            return
        except OSError as error:
            place = above or "the folder itself"
            raise ListingIncomplete(f"The server can't read {place}: {error.strerror}") from None
        for entry in listed:
            if not is_temporary(entry.name):
                yield entry, f"{above}{entry.name}"

    def _item(self, entry: os.DirEntry[str], path: str) -> SourceItem | None:
        """A file; a link only if it leads to a file inside the folder."""
        try:
            if entry.is_symlink() and not Path(entry.path).resolve().is_relative_to(self._root):
                return None
            status = entry.stat()
        except (OSError, RuntimeError):  # gone meanwhile, or a link in a circle
            return None
        if not stat.S_ISREG(status.st_mode):
            return None
        readable_path = path.encode(errors="surrogateescape").decode(errors="replace")
        return SourceItem(
            identity=path if readable_path == path else quote(os.fsencode(path)),
            etag=etag_of(status),
            path=readable_path,
            size=status.st_size,
            modified=_moment(status.st_mtime),
            fingerprint=_fingerprint(status),
            unavailable=None if readable_path == path else "its name is not valid UTF-8",
        )

    @asynccontextmanager
    async def content(self, item: SourceItem) -> AsyncIterator[AsyncIterator[bytes]]:
        """The bytes of a file, as it is now. Raises ItemFault."""
        try:
            number = await asyncio.to_thread(self._open, item.identity)
        except FileNotFoundError:
            raise ItemVanished("It was deleted since it was listed") from None
        except OSError as error:
            raise ItemFault(f"The server can't read it: {error.strerror}") from None
        with os.fdopen(number, "rb", buffering=0) as file:

            async def pieces() -> AsyncIterator[bytes]:
                try:
                    self.check(item, file.fileno())
                    while piece := await asyncio.to_thread(file.read, _PORTION):
                        yield piece
                    self.check(item, file.fileno())
                except OSError as error:
                    raise ItemFault(f"The server can't read it: {error.strerror}") from None

            yield pieces()

    def check(self, item: SourceItem, number: int) -> None:
        """Called with the open file before and after it is read. Raises ItemFault if it may not be stored."""

    def _open(self, path: str) -> int:
        """Open a file folder by folder, without following a link: none that was just put there leads out."""
        place = (self._root / path).resolve(strict=True)
        if not place.is_relative_to(self._root):
            raise FileNotFoundError(path)
        above = os.open("/", _THROUGH)
        try:
            *folders, name = place.parts[1:]
            for folder in folders:
                below = os.open(folder, _THROUGH, dir_fd=above)
                os.close(above)
                above = below
            number = os.open(name, _FLAGS, dir_fd=above)
        finally:
            os.close(above)
        if not stat.S_ISREG(os.fstat(number).st_mode):
            os.close(number)
            raise FileNotFoundError(path)
        return number


def is_temporary(name: str) -> bool:
    """Whether a file or folder of this name is hidden or temporary."""
    return _TEMPORARY.fullmatch(name) is not None


def etag_of(status: os.stat_result) -> str:
    """The etag of a file: it also changes with its permissions."""
    return f"{_fingerprint(status)}-{status.st_ctime_ns}"


def _fingerprint(status: os.stat_result) -> str:
    return f"{status.st_dev}-{status.st_ino}-{status.st_size}-{status.st_mtime_ns}"


def _moment(seconds: float) -> datetime | None:
    """A time on the disk, unless it is beyond every calendar."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def allowed_folder(path: str, allowed: Sequence[str]) -> Path:
    """The folder itself, links resolved. Raises SourceMisplaced unless it is inside one that is allowed."""
    folder = Path(path)
    if not allowed:
        raise SourceMisplaced(
            "No folder of the server may be a source; the operator can allow some in PLATFORM_SOURCE_FOLDERS"
        )
    try:
        place = folder.resolve()
    except (ValueError, OSError, RuntimeError):  # no path at all, or links in a circle
        raise SourceMisplaced("This is not the path of a folder") from None
    if not folder.is_absolute() or not any(place.is_relative_to(Path(one).resolve()) for one in allowed):
        raise SourceMisplaced(
            "This folder may not be a source; the operator can allow it in PLATFORM_SOURCE_FOLDERS"
        )
    return place
