"""Watching a folder of manifests: notices from the file system, with a regular look as the safety net."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from watchfiles import Change, awatch

logger = logging.getLogger(__name__)

SUFFIXES = frozenset((".yaml", ".yml", ".json"))
DEBOUNCE_MS = 200
STEP_MS = 100
LOOK_MS = 1500
"""Each look costs several hand-overs between threads, also when nothing happens."""

Fingerprint = tuple[int, int, int, int]
Snapshot = Mapping[Path, Fingerprint]
Identity = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Changes:
    """What a folder holds now, and how that differs from the last report."""

    files: Snapshot
    added: frozenset[Path]
    changed: frozenset[Path]
    removed: frozenset[Path]


def is_manifest_name(name: str) -> bool:
    """Tell whether a file name is a manifest's: .yaml, .yml or .json, and no dotfile."""
    return not name.startswith(".") and Path(name).suffix in SUFFIXES


def scan(directory: Path) -> dict[Path, Fingerprint]:
    """Fingerprint the manifests directly inside a folder; empty when the folder does not exist. Blocks.

    The fingerprint (inode, bytes, time of modification and of change in ns) differs after any rewrite. Links
    count when their target is a regular file inside the folder, as in a mounted Kubernetes ConfigMap.
    """
    try:
        root = directory.resolve(strict=True)
        names = sorted(entry.name for entry in directory.iterdir() if is_manifest_name(entry.name))
    except OSError:
        return {}
    found = ((directory / name, _fingerprint(directory / name, root)) for name in names)
    return {path: print_ for path, print_ in found if print_ is not None}


async def watch(
    directory: Path,
    on_change: Callable[[Changes], Awaitable[None]],
    stop: asyncio.Event,
    known: Snapshot | None = None,
) -> None:
    """Call `on_change` within 2 s of every change of the folder's manifests, until `stop` is set.

    `known`: what the caller has already read, from scan(); without it, the files already there are reported
    first. The folder may be missing, removed and made again. An error of `on_change` is logged, and the same
    changes are reported again at the next look.
    """
    files: Snapshot = known or {}
    async for now in _looks(directory, stop):
        if now != files and await _report(on_change, _difference(files, now)):
            files = now


def _fingerprint(path: Path, root: Path) -> Fingerprint | None:
    try:
        facts = path.stat()
        inside = not path.is_symlink() or path.resolve(strict=True).is_relative_to(root)
    except (OSError, RuntimeError):
        return None
    if not inside or not stat.S_ISREG(facts.st_mode):
        return None
    return facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def _difference(before: Snapshot, now: Snapshot) -> Changes:
    return Changes(
        files=now,
        added=frozenset(now.keys() - before.keys()),
        changed=frozenset(path for path in now.keys() & before.keys() if now[path] != before[path]),
        removed=frozenset(before.keys() - now.keys()),
    )


async def _report(on_change: Callable[[Changes], Awaitable[None]], changes: Changes) -> bool:
    try:
        await on_change(changes)
    except Exception:  # boundary: a failing reload must not end the watch; it is tried again
        logger.exception("Could not reload the manifests; trying again at the next check")
        return False
    return True


async def _looks(directory: Path, stop: asyncio.Event) -> AsyncIterator[Snapshot]:
    """Yield what the folder holds: at once, on notices, and at least every LOOK_MS."""
    while not stop.is_set():
        identity, files = await asyncio.to_thread(_look, directory)
        yield files
        try:
            async for files in _notices(directory, identity, stop):
                yield files
        except (OSError, RuntimeError) as error:
            # Out of inotify watches, a file system without notices, or the folder vanished meanwhile.
            logger.info(
                "The file system reports no changes to the manifests folder; checking it regularly "
                "instead: %s",
                error,
            )
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), LOOK_MS / 1000)


async def _notices(
    directory: Path, identity: Identity | None, stop: asyncio.Event
) -> AsyncIterator[Snapshot]:
    """Follow the folder of this identity; ends when it is gone or another one took its place."""
    if identity is None:
        return
    notices = awatch(
        directory,
        watch_filter=_wanted,
        debounce=DEBOUNCE_MS,
        step=STEP_MS,
        rust_timeout=LOOK_MS,
        yield_on_timeout=True,
        stop_event=stop,
        recursive=False,
    )
    async with contextlib.aclosing(notices):
        async for _ in notices:
            current, files = await asyncio.to_thread(_look, directory)
            yield files
            if current != identity:
                return


def _look(directory: Path) -> tuple[Identity | None, Snapshot]:
    """The folder's identity and its manifests, read together so that a look costs one thread call."""
    return _identity(directory), scan(directory)


def _identity(directory: Path) -> Identity | None:
    try:
        facts = directory.stat()
    except OSError:
        return None
    return (facts.st_dev, facts.st_ino) if stat.S_ISDIR(facts.st_mode) else None


def _wanted(_: Change, path: str) -> bool:
    return is_manifest_name(Path(path).name)
