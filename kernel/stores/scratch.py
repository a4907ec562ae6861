"""Temporary files that a killed process can't leave behind for good."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


class Scratch:
    """A folder of temporary files, each named after the process that made it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def new(self, suffix: str = "") -> Path:
        """A path for a new file; the folder exists, the file does not."""
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder / f"{os.getpid()}-{uuid.uuid4().hex}{suffix}"

    def sweep(self) -> int:
        """Remove the files of processes that are gone; answers how many."""
        found = list(self._folder.glob("*-*")) if self._folder.is_dir() else []
        stale = [path for path in found if _left_behind(path)]
        for path in stale:
            path.unlink(missing_ok=True)
        return len(stale)


def _left_behind(path: Path) -> bool:
    """Whether the process that made the file is gone; a later one may have got its number."""
    pid = path.name.partition("-")[0]
    if not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
        return Path(f"/proc/{pid}").stat().st_ctime > path.stat().st_mtime + 1
    except ProcessLookupError:
        return True
    except (PermissionError, FileNotFoundError):
        return False
