"""An embedded RDF store: derived from rows, one named graph for each document, a folder for each process.

Oxigraph lets one process write a folder, so each process takes the first free one, and holds a copy of its
own. Queries are answered by other processes from a snapshot: hard links to the store's files, which nobody
writes.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

log = logging.getLogger("platform.graph_rag")

_MOST_FOLDERS = 64
STAMP = "urn:platform:stamp"
"""The statement by which a graph says in which state it is."""

# What Oxigraph raises for a folder that it can't read.
BROKEN = (OSError, ValueError, RuntimeError)


class RdfStore:
    """The store of one process. Its methods block: call them in a thread, one at a time."""

    def __init__(self, folder: Path) -> None:
        self._lock, self._place = _claim(folder)
        self._store: Any = None
        self._stamps: dict[str, str] = {}
        self._snapshots = 0

    def open(self) -> None:
        """Open the store. One that can't be read is replaced by an empty one, and filled again by use."""
        import pyoxigraph

        shutil.rmtree(self._snapshot_folder, ignore_errors=True)
        try:
            self._store = pyoxigraph.Store(str(self._place))
            self._stamps = self._read_stamps()
        except BROKEN as error:
            log.warning(
                "the RDF store can't be read (%s); it is built again from the database", type(error).__name__
            )
            self.start_over()

    def close(self) -> None:
        """Let another process have the folder."""
        self._store = None
        shutil.rmtree(self._snapshot_folder, ignore_errors=True)
        os.close(self._lock)

    def stale(self, wanted: Iterable[tuple[str, str]]) -> set[str]:
        """Which of these graphs (name, stamp) are not here in this state."""
        return {name for name, stamp in wanted if self._stamps.get(name) != stamp}

    def others(self, known: Collection[tuple[str, str]]) -> bool:
        """Whether there is anything here that is not among these graphs and states."""
        return any(one not in known for one in self._stamps.items())

    def start_over(self) -> None:
        """Hold nothing. Oxigraph forgets no text, so what is deleted leaves the disk in this way alone."""
        import pyoxigraph

        self._store = None
        shutil.rmtree(self._place, ignore_errors=True)
        self._store, self._stamps = pyoxigraph.Store(str(self._place)), {}

    def put(self, name: str, stamp: str, quads: Iterable[Any]) -> None:
        """Hold this graph in this state. Killed halfway, it counts as stale."""
        self._forget(name)
        self._store.bulk_extend(quads)
        self._store.add(_stamp_of(name, stamp))
        self._stamps[name] = stamp

    def _forget(self, name: str) -> None:
        import pyoxigraph

        if name in self._stamps:
            self._store.remove(_stamp_of(name, self._stamps.pop(name)))
        self._store.remove_graph(pyoxigraph.NamedNode(name))

    def snapshot(self) -> Path:
        """A folder with the store as it is now, for another process to read."""
        self._snapshots += 1
        self._snapshot_folder.mkdir(parents=True, exist_ok=True)
        made = self._snapshot_folder / str(self._snapshots)
        self._store.flush()
        self._store.backup(str(made))
        return made

    @property
    def _snapshot_folder(self) -> Path:
        return self._place.with_suffix(".snapshots")

    def _read_stamps(self) -> dict[str, str]:
        import pyoxigraph

        found = self._store.quads_for_pattern(None, pyoxigraph.NamedNode(STAMP), None, None)
        return {quad.subject.value: quad.object.value for quad in found}


def discard_unused(folder: Path) -> None:
    """Remove the stores of ended processes, so that nothing of what is deleted now stays in one."""
    for lock in folder.glob("*.lock"):
        handle = os.open(lock, os.O_RDWR)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
            shutil.rmtree(lock.with_suffix(".snapshots"), ignore_errors=True)
        except OSError:
            log.debug("another process uses %s", lock)
        finally:
            os.close(handle)


def _claim(folder: Path) -> tuple[int, Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(_MOST_FOLDERS):
        handle = os.open(folder / f"{number}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            continue
        return handle, folder / str(number)
    raise OSError(f"{_MOST_FOLDERS} processes have an RDF store open already")


def _stamp_of(name: str, stamp: str) -> Any:
    import pyoxigraph as ox

    return ox.Quad(ox.NamedNode(name), ox.NamedNode(STAMP), ox.Literal(stamp), ox.DefaultGraph())
