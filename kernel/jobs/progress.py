"""How far a long job has got, as reported by its handler."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from kernel.db.base import utc_now

LONGEST_UNIT = 32
LONGEST_MESSAGE = 500


class Progress:
    """How far a long job has got. Reporting is cheap: the worker saves it at most once a second.

    Can be used from any thread. `done` and `total` count `unit`s (in the plural, such as "pages"); after a
    crash they are as last saved. `message` is one line for people; don't put secrets into it.
    """

    def __init__(self, done: int = 0, total: int | None = None, unit: str = "", message: str = "") -> None:
        self.done = done
        self.total = total
        self.unit = unit
        self.message = message
        self._pace: Mapping[str, int | datetime] = {}
        self._saved = self.values()

    def report(
        self,
        done: int | None = None,
        *,
        total: int | None = None,
        unit: str | None = None,
        message: str | None = None,
    ) -> None:
        """Set what has changed; omitted values stay as they are."""
        self.done = self.done if done is None else done
        self.total = self.total if total is None else total
        self.unit = self.unit if unit is None else unit
        self.message = self.message if message is None else message

    def advance(self, by: int = 1) -> None:
        """Add to `done`. For handlers with one thread: two simultaneous calls may count as one."""
        self.done += by

    def restart_pace(self) -> None:
        """Estimate the time left from now on: what is done by now went at another pace, such as parsing."""
        self._pace = {"paced_from": self.done, "paced_since": utc_now()}

    def values(self) -> Mapping[str, Any]:
        """The fields as they are stored."""
        return {
            "done": self.done,
            "total": self.total,
            "unit": self.unit[:LONGEST_UNIT],
            "message": self.message[:LONGEST_MESSAGE],
            **self._pace,
        }

    def unsaved(self) -> Mapping[str, Any]:
        """What must be saved, and from now on counts as saved; empty if nothing changed."""
        values = self.values()
        if values == self._saved:
            return {}
        self._saved = values
        return values
