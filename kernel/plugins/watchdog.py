"""Notices plugins that block the event loop while they start, and keeps them out from then on.

No time limit inside the loop can end a step that never yields (`time.sleep` in an async open). A thread can
see it, but can't end it either: the only remedy is a new process that starts without the plugin.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel.plugins.loading import Candidate

log = logging.getLogger("platform.plugins")

_FILE = Path("run") / "quarantine.json"

OnStuck = Callable[[str, str], None]


class StartWatch:
    """Calls `on_stuck(plugin, step)` from a thread when a step lasts longer than `seconds`.

    A step that merely awaits for too long has its own, shorter limit. Without `on_stuck`, nothing is watched.
    """

    def __init__(self, seconds: float, on_stuck: OnStuck | None) -> None:
        self._seconds = seconds
        self._on_stuck = on_stuck

    @contextmanager
    def step(self, plugin: str, what: str) -> Iterator[None]:
        """Watch what happens inside the block."""
        if self._on_stuck is None:
            yield
            return
        timer = threading.Timer(self._seconds, self._on_stuck, (plugin, what))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


@dataclass(frozen=True)
class Exclusion:
    """A plugin that is kept out, with the version of its package at that time."""

    version: str | None
    reason: str


class Quarantine:
    """A home's plugins that are no longer started, until their package changes or they are released."""

    def __init__(self, home: Path) -> None:
        self._path = home / _FILE

    def keep_out(self, candidate: Candidate) -> str | None:
        """Why the candidate must not be loaded; None if it may be."""
        entry = self.entries().get(candidate.name)
        return entry.reason if entry is not None and entry.version == candidate.version else None

    def add(self, name: str, version: str | None, reason: str) -> None:
        """Keep a plugin out; stored durably."""
        self._write({**self.entries(), name: Exclusion(version, reason)})

    def release(self, name: str) -> bool:
        """Let a plugin try again at the next start. Returns whether it was kept out."""
        entries = self.entries()
        if entries.pop(name, None) is None:
            return False
        self._write(entries)
        return True

    def entries(self) -> dict[str, Exclusion]:
        """Every plugin that is kept out; none if the file can't be read."""
        try:
            entries = json.loads(self._path.read_text(encoding="utf-8"))
            return {name: Exclusion(item["version"], str(item["reason"])) for name, item in entries.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            log.warning("%s can't be read and is ignored; remove it", self._path)
            return {}

    def _write(self, entries: dict[str, Exclusion]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = self._path.with_name(f".{self._path.name}.{secrets.token_hex(8)}")
        content: dict[str, Any] = {name: vars(entry) for name, entry in entries.items()}
        with temporary.open("w", encoding="utf-8") as handle:
            json.dump(content, handle, ensure_ascii=False)
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(self._path)


def restart_without(
    quarantine: Quarantine, version_of: Callable[[str], str | None], name: str, what: str
) -> None:
    """Keep the plugin out and replace this process with a new one with the same command line.

    Runs in a thread while the event loop is stuck; execve(2) ends every other thread.
    """
    reason = (
        f"{what} blocked the whole process and was stopped; it stays out until its package changes or "
        f"you run "
        f"`platformctl plugins release {name}`"
    )
    quarantine.add(name, version_of(name), reason)
    log.critical("plugin %s: %s; starting again without it", name, reason)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
