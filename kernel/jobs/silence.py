"""Finds dead workers: those whose sign of life has not changed for too long.

Measured by the observer's own monotonic clock: a machine whose clock is wrong or gets set neither loses jobs
that it is working on nor keeps them when it is dead.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

SILENT_SECONDS = 30.0
GONE = datetime(1970, 1, 1, tzinfo=UTC)
"""The last sign of life of a worker that stopped in an orderly way."""

_BLIND_SECONDS = 20.0  # between checks: who could not check has not observed any silence


class Watched:
    """The signs of life of all workers, as observed by one of them."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[datetime, float]] = {}
        self._looked_at = float("-inf")

    def silent(self, beats: Mapping[str, datetime], now: float) -> list[str]:
        """The dead workers, given the last beat of each and the observer's time `now`.

        After a gap, such as an outage of the database, all silences start over: the others could not show
        life either, and the first to return must not take over everybody's jobs.
        """
        if now - self._looked_at > _BLIND_SECONDS:
            self._seen = {name: (beat, now) for name, (beat, _) in self._seen.items()}
        self._looked_at = now
        self._seen = {name: self._since(name, beat, now) for name, beat in beats.items()}
        return [
            name for name, (beat, since) in self._seen.items() if beat == GONE or now - since > SILENT_SECONDS
        ]

    def _since(self, name: str, beat: datetime, now: float) -> tuple[datetime, float]:
        known = self._seen.get(name)
        return known if known is not None and known[0] == beat else (beat, now)
