"""States of runs."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

RunState: TypeAlias = Literal[
    "queued",
    "running",
    "waiting",
    "needs_confirmation",
    "done",
    "failed",
    "credential_refused",
    "cancelled",
    "superseded",
]
Trigger: TypeAlias = Literal["hand", "schedule", "push"]

ACTIVE: Final = ("queued", "running", "waiting")
"""One run of a source at a time is in one of these."""


class SourceEnded(Exception):
    """The run is to go on no longer: it was cancelled, or its source is being removed."""
