"""Watches a folder of manifests: by file system notices, with regular polling as the safety net."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import stat
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import watchfiles
from sqlalchemy.exc import SQLAlchemyError
from watchfiles import Change

logger = logging.getLogger(__name__)

SUFFIXES = frozenset((".yaml", ".yml", ".json"))
DEBOUNCE_MS = 200
STEP_MS = 100
LOOK_MS = 1000
"""The polling interval, as a safety net for file systems without notices."""
SETTLED_SECONDS = 0.15
"""How long a folder has to stay unchanged: editors rename or empty a file before they write it."""
_MOST_LOOKS = 4  # for a folder that keeps changing

Fingerprint = tuple[int, int, int, int]
Snapshot = Mapping[Path, Fingerprint]
Identity = tuple[int, int]


@dataclass(frozen=True, slots=True)
class FolderChanges:
    """A folder's current content, and how it differs from the last report."""

    files: Snapshot
    added: frozenset[Path]
    changed: frozenset[Path]
    removed: frozenset[Path]


def is_manifest_name(name: str) -> bool:
    """Whether a file name is a manifest's: .yaml, .yml or .json, and not a dotfile."""
    return not name.startswith(".") and Path(name).suffix in SUFFIXES


def scan(directory: Path) -> dict[Path, Fingerprint]:
    """Fingerprint the manifests directly inside a folder; empty when the folder does not exist. Blocks.

    The fingerprint (inode, bytes, time of modification and of change in ns) differs after any rewrite. A link
    has its target's when that is a regular file inside the folder, as in a mounted Kubernetes ConfigMap; any
    other has its own, so that its reader can say what is wrong with it.
    """
    try:
        root = directory.resolve(strict=True)
        names = sorted(entry.name for entry in directory.iterdir() if is_manifest_name(entry.name))
    except (OSError, RuntimeError):  # the latter for links in a circle
        return {}
    fingerprints = ((directory / name, _fingerprint(directory / name, root)) for name in names)
    return {path: print_ for path, print_ in fingerprints if print_ is not None}


async def watch(
    directory: Path,
    on_change: Callable[[FolderChanges], Awaitable[None]],
    stop: asyncio.Event,
    previous: Snapshot | None = None,
) -> None:
    """Call `on_change` within 2 s of every change of the folder's manifests, until `stop` is set.

    `previous`: what the caller has read, from scan(); without it, the files already there are reported
    first. The folder may be missing, removed and made again. An error of `on_change` is logged, and the same
    changes are reported again at the next look.
    """
    files: Snapshot = previous or {}
    failing = False
    async with _Looks(directory, stop) as looks:
        while not stop.is_set():
            now = await looks.next()
            if now == files:
                continue
            failing = not await _report(on_change, _difference(files, now), is_reported=failing)
            if failing:
                looks.repeat()
            else:
                files = now


def _fingerprint(path: Path, root: Path) -> Fingerprint | None:
    try:
        facts = path.lstat()
        if stat.S_ISLNK(facts.st_mode):
            facts = _followed(path, root) or facts
    except OSError:
        return None
    if not stat.S_ISREG(facts.st_mode) and not stat.S_ISLNK(facts.st_mode):
        return None
    return facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def _followed(link: Path, root: Path) -> os.stat_result | None:
    """A regular file inside the folder to which a link leads."""
    try:
        target = link.resolve(strict=True)
        facts = target.lstat()
    except (OSError, RuntimeError):  # the latter for links in a circle
        return None
    return facts if target.is_relative_to(root) and stat.S_ISREG(facts.st_mode) else None


def _difference(before: Snapshot, now: Snapshot) -> FolderChanges:
    return FolderChanges(
        files=now,
        added=frozenset(now.keys() - before.keys()),
        changed=frozenset(path for path in now.keys() & before.keys() if now[path] != before[path]),
        removed=frozenset(before.keys() - now.keys()),
    )


async def _report(
    on_change: Callable[[FolderChanges], Awaitable[None]], changes: FolderChanges, *, is_reported: bool
) -> bool:
    """Call `on_change`; returns whether it succeeded. An outage already `is_reported` is not logged again."""
    try:
        await on_change(changes)
    except (SQLAlchemyError, OSError) as error:
        if not is_reported:
            why = error if isinstance(error, OSError) else type(error).__name__
            logger.warning("a change of the manifests waits until it can be taken in: %s", why)
        return False
    except Exception:  # boundary: a failing reload must not end the watch; it is retried
        logger.exception("Could not reload the manifests; trying again at the next check")
        return False
    return True


class _Looks:
    """Polls the folder in its own thread and reports only changes.

    Most polls find none, so the event loop isn't woken on an idle platform.
    """

    def __init__(self, directory: Path, stop: asyncio.Event) -> None:
        self._directory = directory
        self._stop = stop
        self._loop = asyncio.get_running_loop()
        self._ended = threading.Event()
        self._news = asyncio.Event()
        self._files: Snapshot = {}
        self._thread = threading.Thread(target=self._run, name="manifests", daemon=True)

    async def __aenter__(self) -> _Looks:
        self._stopping = asyncio.create_task(self._wake_at_stop())
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stopping.cancel()
        self._ended.set()
        await asyncio.to_thread(self._thread.join)

    async def next(self) -> Snapshot:
        """Wait for a change or the stop; returns the folder's content."""
        await self._news.wait()
        self._news.clear()
        return self._files

    def repeat(self) -> None:
        """Report the same content again, after one interval."""
        self._loop.call_later(LOOK_MS / 1000, self._news.set)

    async def _wake_at_stop(self) -> None:
        await self._stop.wait()
        self._news.set()

    def _run(self) -> None:
        """Look at once, on notices, and at least every LOOK_MS. Blocks."""
        last: Snapshot | None = None
        for files in self._looks():
            if files == last:
                continue
            files = self._settled(files)
            if files != last:
                last = files
                with contextlib.suppress(RuntimeError):  # the loop is closed: its program ends
                    self._loop.call_soon_threadsafe(self._tell, files)

    def _settled(self, files: Snapshot) -> Snapshot:
        """The folder's content, once it stays the same for a moment. Blocks."""
        for _ in range(_MOST_LOOKS):
            self._ended.wait(SETTLED_SECONDS)
            before, files = files, scan(self._directory)
            if files == before:
                break
        return files

    def _tell(self, files: Snapshot) -> None:
        self._files = files
        self._news.set()

    def _looks(self) -> Iterator[Snapshot]:
        while not self._ended.is_set():
            identity, files = _look(self._directory)
            yield files
            try:
                yield from self._noticed(identity)
            except (OSError, RuntimeError) as error:
                # No inotify watch left, a file system without notices, or the folder has vanished.
                logger.info(
                    "The file system reports no changes to the manifests folder; checking it regularly "
                    "instead: %s",
                    error,
                )
            self._ended.wait(LOOK_MS / 1000)

    def _noticed(self, identity: Identity | None) -> Iterator[Snapshot]:
        """Follow the folder of this identity; ends when it is gone or another one took its place."""
        if identity is None:
            return
        notices = watchfiles.watch(
            self._directory,
            watch_filter=_is_manifest,
            debounce=DEBOUNCE_MS,
            step=STEP_MS,
            rust_timeout=LOOK_MS,
            yield_on_timeout=True,
            stop_event=self._ended,
            recursive=False,
        )
        for _ in notices:
            current, files = _look(self._directory)
            yield files
            if current != identity:
                return


def _look(directory: Path) -> tuple[Identity | None, Snapshot]:
    """The folder's identity and its manifests, read together."""
    return _identity(directory), scan(directory)


def _identity(directory: Path) -> Identity | None:
    try:
        facts = directory.stat()
    except OSError:
        return None
    return (facts.st_dev, facts.st_ino) if stat.S_ISDIR(facts.st_mode) else None


def _is_manifest(_: Change, path: str) -> bool:
    return is_manifest_name(Path(path).name)
