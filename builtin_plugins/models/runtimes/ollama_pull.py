"""The progress of Ollama's /api/pull: one count for each file of a model, by its digest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from builtin_plugins.models.runtimes.protocol import PullProgress
from builtin_plugins.models.runtimes.vectors import is_count


class PullTally:
    """Adds up the progress in the lines of a pull."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[int, int]] = {}

    def read(self, part: Mapping[str, Any]) -> PullProgress:
        """How far the pull is after this line."""
        digest, total, completed = part.get("digest"), part.get("total"), part.get("completed")
        if isinstance(digest, str) and is_count(total):
            before = self._files.get(digest, (0, 0))[0]
            self._files[digest] = (completed if is_count(completed) else before, total)
        stage = str(part.get("status") or "")
        done = sum(completed for completed, _ in self._files.values())
        return PullProgress(
            stage[:100], done, sum(total for _, total in self._files.values()), stage == "success"
        )
