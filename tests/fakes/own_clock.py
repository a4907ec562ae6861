"""The clock of the tests' own process, for what must go by the database's: a second machine, as it were."""

from __future__ import annotations

import time

import pytest


class OwnClock:
    """Moves what `time.time` says, and with it `utc_now`; PostgreSQL's clock goes on as before."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch, self._real = monkeypatch, time.time

    def by(self, seconds: float) -> None:
        """By how much it differs from the machine's."""
        self._patch.setattr(time, "time", lambda: self._real() + seconds)
