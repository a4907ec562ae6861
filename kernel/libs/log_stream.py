"""Where log lines go: a file that is reopened when it was moved, or standard error."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import TextIO


class LogStream:
    """Appends lines to a file or to standard error, and never fails: a request that succeeded must not get a
    500 because the disk has no space for its log line.

    If the file has been moved, it is reopened. Lines that can't be written go to standard error; if that
    fails, too, they are lost.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._error: TextIO | None = sys.stderr  # None if the process was started without one
        self._opened: FileIO | None = None
        self._torn = False
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._open(file)

    def write(self, text: str) -> None:
        """Write whole lines: to a file at once and in one piece, so that processes don't mix theirs."""
        if self._file is not None:
            with suppress(OSError):
                if self._append(self._file, text):
                    return
        if self._error is not None:
            with suppress(OSError, ValueError):  # a full disk, a closed pipe, a closed stream
                self._error.write(text)

    def flush(self) -> None:
        """Flush standard error."""
        if self._error is not None:
            with suppress(OSError, ValueError):
                self._error.flush()

    def close(self) -> None:
        """Close the file; another line would reopen it."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _append(self, file: Path, text: str) -> bool:
        """Append to the file; returns whether all of it was written."""
        data = b"\n" * self._torn + text.encode(errors="backslashreplace")
        written = self._current(file).write(data) or 0
        self._torn = 0 < written < len(data)
        return written == len(data)

    def _current(self, file: Path) -> FileIO:
        if self._opened is not None:
            with suppress(FileNotFoundError):
                if os.path.samestat(file.stat(), os.fstat(self._opened.fileno())):
                    return self._opened
        return self._open(file)

    def _open(self, file: Path) -> FileIO:
        opened = file.open("ab", buffering=0)
        self.close()
        self._opened = opened
        return opened
