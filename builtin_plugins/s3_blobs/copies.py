"""Local copies of contents: fetched when read, removed when space is short.

All calls block. Several processes share the folder.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_IN_USE = 300.0
"""Seconds for which a requested copy is kept, as the caller may not have opened it yet."""
_LEAVES = 0.8


class _Copy(NamedTuple):
    used_at: float
    size: int
    path: Path

    @property
    def sha256(self) -> str:
        """The hash of its content."""
        return self.path.parent.name + self.path.name


class Copies:
    """Files by the SHA-256 of their content, up to `most` bytes in total."""

    def __init__(self, folder: Path, most: int) -> None:
        self._folder = folder
        self._most = most
        self._lock = threading.Lock()
        self._whole: set[str] = set()  # copies that this process has verified
        self._size: int | None = None  # since the last check; other processes add copies, too

    def path(self, sha256: str) -> Path:
        """Where a content's copy is, if there is one."""
        return self._folder / sha256[:2] / sha256[2:]

    def use(self, sha256: str) -> bool:
        """Whether there is a copy; it is then kept for the next minutes.

        Copies from before this process are verified on first use: a power cut may have damaged them, because
        copies are not synced.
        """
        path = self.path(sha256)
        try:
            os.utime(path)
            if sha256 not in self._whole and not self._is_whole(path, sha256):
                self.remove(sha256)
                return False
        except FileNotFoundError:
            self._whole.discard(sha256)
            return False
        return True

    def _is_whole(self, path: Path, sha256: str) -> bool:
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
                return False
        self._whole.add(sha256)
        return True

    def add(self, sha256: str, file: Path, size: int) -> None:
        """Move a file on the same disk into place as a copy; then remove old copies for it."""
        target = self.path(sha256)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.utime(file)
        file.replace(target)
        self._whole.add(sha256)
        with self._lock:
            self._size = None if self._size is None else self._size + size
            if self._size is None or self._size > self._most:
                self._size = self._give_up()

    def remove(self, sha256: str) -> None:
        """Remove a copy, if there is one."""
        self._whole.discard(sha256)
        self.path(sha256).unlink(missing_ok=True)

    def names(self) -> list[str]:
        """The contents that have a copy."""
        return [copy.sha256 for copy in self._copies()]

    def _give_up(self) -> int:
        """Remove the least recently used copies until the rest fits; returns the rest's size."""
        copies = sorted(self._copies())
        size, unused_since = sum(copy.size for copy in copies), time.time() - _IN_USE
        target_size = self._most if size <= self._most else int(self._most * _LEAVES)
        for copy in copies:
            if size <= target_size or copy.used_at > unused_since:
                break
            self.remove(copy.sha256)
            size -= copy.size
        return size

    def _copies(self) -> Iterator[_Copy]:
        for path in self._folder.glob("??/*"):
            with suppress(FileNotFoundError):
                about = path.stat()
                yield _Copy(about.st_mtime, about.st_size, path)
