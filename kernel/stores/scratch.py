"""Temporary files that are removed even if their process was killed."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import socket
import time
import uuid
from pathlib import Path

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
        found = list(self._folder.iterdir()) if self._folder.is_dir() else []
        stale = [path for path in found if self._left_behind(path)]
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
