"""Structured logs with the request id; anything that looks like a secret is masked."""

from __future__ import annotations

import json
import logging
import re
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from pathlib import Path
from typing import Any, Literal, NamedTuple

from kernel.libs.log_stream import LogStream

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


@lru_cache(maxsize=4)
def _second(second: int) -> str:
    """A second in UTC as text; cached, as thousands of lines share one."""
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%S}"


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def access_line(self, entry: AccessEntry) -> str:
        """A served request as one line; only its subject may contain characters that JSON escapes."""
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


class LogFormatter(logging.Formatter):
    """Lines for a person at a terminal."""

    def access_line(self, entry: AccessEntry) -> str:
        """A served request as one line."""
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


class _StreamHandler(logging.StreamHandler[LogStream]):
    """Closes its stream when it is closed, as logging's file handlers do."""

    def close(self) -> None:
        super().close()
        self.stream.close()
