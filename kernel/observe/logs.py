"""Structured logs with the request id; anything that looks like a secret is masked."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from abc import ABC, abstractmethod
from contextlib import suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache
from io import FileIO
from json.encoder import encode_basestring_ascii
from pathlib import Path
from typing import Any, Literal, NamedTuple, TextIO

request_id_var: ContextVar[str | None] = ContextVar("platform_request_id", default=None)

_SECRETS = re.compile(
    r"(?i)(bearer\s+)[A-Za-z0-9._~+/=-]{8,}"
    r"|(eyJ)[A-Za-z0-9_-]{1,2000}+\.[A-Za-z0-9_-]++\.[A-Za-z0-9_-]*+"
    r"|(whsec_)[A-Za-z0-9+/=]+"
    r"|(://[^/\s:@]*:)[^@\s/]+(?=@)"
    r"|((?:password|secret|api[_-]?key|token)[\"']?\s*[:=]\s*[\"']?)[^\s\"',;}]+"
)
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def mask(text: str) -> str:
    """`text` with tokens, passwords in addresses and the like replaced by ``***``."""
    return _SECRETS.sub(lambda match: next(g for g in match.groups() if g) + "***", text)


class AccessEntry(NamedTuple):
    """A served request. `time` in seconds since the epoch; method, endpoint and id are safe to print."""

    time: float
    method: str
    endpoint: str
    status: int
    duration_ms: float
    request_id: str
    subject: str | None


class AccessFormatter(logging.Formatter, ABC):
    """A formatter with a fast way to print a served request."""

    @abstractmethod
    def access_line(self, entry: AccessEntry) -> str:
        """The entry as one line, without a line break."""


@lru_cache(maxsize=4)
def _second(second: int) -> str:
    """A second in UTC as text; cached, as thousands of lines share one."""
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%S}"


class JsonFormatter(AccessFormatter):
    """One JSON object per line."""

    def access_line(self, entry: AccessEntry) -> str:
        """See `AccessFormatter`; only the subject may contain characters that JSON escapes."""
        time = f"{_second(int(entry.time))}.{int(entry.time % 1 * 1000):03}+00:00"
        subject = f', "subject": {encode_basestring_ascii(entry.subject)}' if entry.subject else ""
        return (
            f'{{"time": "{time}", "level": "info", "logger": "platform.access", '
            f'"message": "{entry.method} {entry.endpoint} {entry.status}", '
            f'"request_id": "{entry.request_id}", "duration_ms": {entry.duration_ms}{subject}}}'
        )

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": mask(record.getMessage()),
        }
        request_id = request_id_var.get()
        if request_id:
            line["request_id"] = request_id
        extra = {k: v for k, v in vars(record).items() if k not in _STANDARD and v is not None}
        line.update({k: mask(v) if isinstance(v, str) else v for k, v in extra.items()})
        if record.exc_info:
            line["exception"] = mask(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False, default=str)


class LogFormatter(AccessFormatter):
    """Lines for a person at a terminal."""

    def access_line(self, entry: AccessEntry) -> str:
        """See `AccessFormatter`."""
        head = f"{datetime.fromtimestamp(entry.time):%H:%M:%S} INFO    platform.access"
        tail = f"{entry.duration_ms} ms [{entry.request_id}]"
        return f"{head} {entry.method} {entry.endpoint} {entry.status} {tail}"

    def format(self, record: logging.LogRecord) -> str:
        request_id = request_id_var.get()
        head = f"{datetime.fromtimestamp(record.created):%H:%M:%S} {record.levelname:<7} {record.name}"
        text = f"{head} {mask(record.getMessage())}" + (f" [{request_id}]" if request_id else "")
        return text + ("\n" + mask(self.formatException(record.exc_info)) if record.exc_info else "")


def configure(level: str, style: Literal["auto", "json", "text"] = "auto", file: Path | None = None) -> None:
    """Send all logs to standard error or to `file`. Called by a command, never at import.

    `auto` is text on a terminal, otherwise JSON. A file that is moved away (logrotate) is reopened.
    """
    handler = _StreamHandler(LogStream(file))
    readable = style == "text" or (style == "auto" and file is None and sys.stderr.isatty())
    handler.setFormatter(LogFormatter() if readable else JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for noisy in ("aiosqlite", "asyncio", "alembic", "faiss", "httpx", "watchfiles"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, root.level))


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


class _StreamHandler(logging.StreamHandler[LogStream]):
    """Closes its stream when it is closed, as logging's file handlers do."""

    def close(self) -> None:
        super().close()
        self.stream.close()
