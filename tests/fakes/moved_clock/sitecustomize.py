"""Python reads this at its start: clocks that differ from the machine's by what a file says.

Put this folder on PYTHONPATH, and the file's path (of a number of seconds) into TEST_CLOCK. What measures
durations (`time.monotonic`) is left alone, as the operating system leaves it alone when a clock is set.
"""

from __future__ import annotations

import datetime
import os
import time
from pathlib import Path
from typing import Any

_REAL_TIME = time.time
_REAL = datetime.datetime
_FILE = Path(os.environ["TEST_CLOCK"])


def _offset() -> float:
    return float(_FILE.read_text() or 0)


class _Kind(type(_REAL)):  # type: ignore[misc]
    """A datetime is one, whoever made it."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, _REAL)


class _Moved(_REAL, metaclass=_Kind):
    """Answers ordinary datetimes."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        return _REAL.now(tz) + datetime.timedelta(seconds=_offset())

    @classmethod
    def utcnow(cls) -> Any:
        return cls.now(datetime.UTC).replace(tzinfo=None)


time.time = lambda: _REAL_TIME() + _offset()
datetime.datetime = _Moved  # type: ignore[misc]
