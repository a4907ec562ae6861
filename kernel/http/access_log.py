"""One log line per request, written in batches: formatting and writing each line by itself would cost as much
as serving a small request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from kernel.logs import AccessEntry, AccessFormatter
from kernel.resource_keys import ResourceKey

log = logging.getLogger("platform.access")

_EVERY = 0.05
_BUNDLE = 200  # requests wait while a batch is written: 2,000 lines took 7 ms


class AccessLog:
    """Collects entries and hands them to the log's handlers many times a second."""

    def __init__(self) -> None:
        self._entries: list[AccessEntry] = []
        self._timer: asyncio.TimerHandle | None = None

    @property
    def enabled(self) -> bool:
        """Whether the access log is on."""
        return log.isEnabledFor(logging.INFO)

    def add(self, entry: AccessEntry) -> None:
        """Write the entry soon."""
        self._entries.append(entry)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_EVERY, self.flush)
        elif len(self._entries) >= _BUNDLE:
            self.flush()

    def flush(self) -> None:
        """Write what is waiting."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        entries, self._entries = self._entries, []
        if entries:
            for handler in _handlers():
                _emit(handler, entries)


ACCESS_LOG: ResourceKey[AccessLog] = ResourceKey("access_log")


def _handlers() -> list[logging.Handler]:
    """The handlers that this logger's records would reach."""
    found: list[logging.Handler] = []
    logger: logging.Logger | None = log
    while logger is not None:
        found += [handler for handler in logger.handlers if handler.level <= logging.INFO]
        logger = logger.parent if logger.propagate else None
    return found


def _emit(handler: logging.Handler, entries: Sequence[AccessEntry]) -> None:
    formatter = handler.formatter
    if isinstance(handler, logging.StreamHandler) and isinstance(formatter, AccessFormatter):
        text = "".join(f"{formatter.access_line(entry)}\n" for entry in entries)
        with handler.lock or _NoLock():
            handler.stream.write(text)
            handler.flush()
        return
    for entry in entries:
        handler.handle(_record(entry))


def _record(entry: AccessEntry) -> logging.LogRecord:
    message = f"{entry.method} {entry.endpoint} {entry.status}"
    record = logging.LogRecord(log.name, logging.INFO, __file__, 0, message, None, None)
    record.created = entry.time
    record.request_id = entry.request_id
    record.duration_ms = entry.duration_ms
    record.subject = entry.subject
    return record


class _NoLock:
    """Stands in for the lock of a handler that has none."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None
