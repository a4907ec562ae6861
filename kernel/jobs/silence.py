"""Which workers are gone: those whose sign of life stays the same for too long.

By the clock of who looks, which nobody sets (`time.monotonic`): a machine whose clock is set back or forward,
or is wrong, neither loses its jobs while it works on them nor keeps them when it is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

SILENT_SECONDS = 30.0
GONE = datetime(1970, 1, 1, tzinfo=UTC)
"""The last sign of life of a worker that said goodbye."""

_BLIND_SECONDS = 20.0  # between two looks: who could not look, saw nobody's silence


class Watched:
    """The signs of life of other workers, as one of them sees them."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[datetime, float]] = {}
        self._looked_at = float("-inf")

    def silent(self, beats: Mapping[str, datetime], now: float) -> list[str]:
        """Those that are gone, from the last beat of each at the moment `now` of the watcher's clock.

        After a while without a look, such as an outage of the database, everybody's silence starts over: they
        could not show life either, and the first that can again must not take the jobs of all others.
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
