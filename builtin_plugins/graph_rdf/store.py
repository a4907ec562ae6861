"""An embedded RDF store: derived from rows, one named graph for each document, a folder for each process.

Oxigraph lets only one process write to a folder, so each process takes the first free one and keeps its own
copy. Other processes answer queries from a snapshot: hard links to the store's files, which are never
modified.

For each pattern, Oxigraph searches every graph of a dataset. To make a default graph of thousands of
documents fast, every statement is also kept in a graph of all documents of one owner: a knowledge base, or
the account that constructed them.

Oxigraph never deletes texts from its files. After a drop, the store is copied, statement by statement, and
the copy takes its place.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from builtin_plugins.graph_rag.api import seal_of
from kernel.sdk.operations import take_slot

from . import row_file
from .marks import OWNER, SPENT, STAMP, STORE, WRITING, mark, read_marks
from .rows import VisibleGraph, VisibleGraphs
from .triples import lines

log = logging.getLogger("platform.graph_rag")

_MOST_FOLDERS = 64
_ROOM = 2
"""Free space for a copy, as a multiple of the store's size: its own, and as much while it is written."""

# What Oxigraph raises for a folder that it can't read.
BROKEN = (OSError, ValueError, RuntimeError)


Inventory = Mapping[str, tuple[int, int]]


def holds(inventory: Inventory, visible: Iterable[VisibleGraphs]) -> bool:
    """Whether exactly the wanted graphs of these owners are held, by number and state."""
    return all(inventory.get(one.owner, (0, 0)) == (one.count, one.seals) for one in visible)


class RdfStore:
    """The store of one process. Its methods block: call them in a thread, one at a time.

    If `put` or `drop` fails, it refuses further writes: close it and open a new one, which starts over.
    """

    def __init__(self, folder: Path) -> None:
        self._slot = take_slot(folder, _MOST_FOLDERS)
        self._place = folder / str(self._slot.number)
        self._store: Any = None
        self._stamps: dict[str, str] = {}
        self._owners: dict[str, str] = {}
        self._sums: dict[str, tuple[int, int]] = {}
        self._snapshots = 0
        self.spent = False
        """Whether the files still contain texts of dropped graphs."""

    def open(self) -> None:
        """Open the store. An unreadable one is replaced by an empty one, which queries fill again."""
        shutil.rmtree(self._snapshot_folder, ignore_errors=True)
        shutil.rmtree(self.copy_place, ignore_errors=True)
        try:
            self._open()
            return
        except BROKEN as error:
            log.warning(
                "the RDF store can't be used (%s); rebuilding it from the database", type(error).__name__
            )
        self.start_over()  # outside the handler, as the error refers to what keeps the folder locked

    def _open(self) -> None:
        self._store = _opened(self._place)
        self._stamps, self._owners = read_marks(self._store, STAMP), read_marks(self._store, OWNER)
        self._sums = {}
        for name, owner in self._owners.items():
            self._count(owner, self._stamps.get(name, ""), 1)
        self.spent = bool(read_marks(self._store, SPENT))
        if read_marks(self._store, WRITING):
            raise ValueError("a process ended while it wrote")

    def close(self) -> None:
        """Let another process have the folder."""
        self._store = None
        shutil.rmtree(self._snapshot_folder, ignore_errors=True)
        shutil.rmtree(self.copy_place, ignore_errors=True)
        self._slot.handle.close()

    def stale(self, graphs: Iterable[VisibleGraph]) -> list[VisibleGraph]:
        """Which of these graphs are missing here or in another state."""
        return [
            one
            for one in graphs
            if self._stamps.get(one.name) != one.stamp or self._owners.get(one.name) != one.owner
        ]

    def inventory(self) -> Inventory:
        """How many graphs of each owner are here now, and the sums of their seals."""
        return dict(self._sums)

    def gone(self, current: Collection[tuple[str, str]]) -> list[str]:
        """The graphs here that are not among these, by name and state."""
        return [name for name, stamp in self._stamps.items() if (name, stamp) not in current]

    def outgrown(self, graphs: Sequence[VisibleGraph]) -> bool:
        """Whether an owner of these has other graphs here, too, or these in other states."""
        states, owners = {(one.name, one.stamp) for one in graphs}, {one.owner for one in graphs}
        return any(
            owner in owners and (name, self._stamps[name]) not in states
            for name, owner in self._owners.items()
        )

    def mostly(self, names: Sequence[str]) -> bool:
        """Whether these are more than half of all graphs, by number."""
        return 2 * len(names) > len(self._stamps)

    def merged(self, graphs: Sequence[VisibleGraph]) -> list[str]:
        """The fewest graphs that contain exactly what these contain.

        An owner's graph replaces those of its documents if all of the owner's documents here are among
        `graphs`.
        """
        partly = self._partly(graphs)
        owners = dict.fromkeys(one.owner for one in graphs if one.owner not in partly)
        return [*owners, *(one.name for one in graphs if one.owner in partly)]

    def _partly(self, graphs: Sequence[VisibleGraph]) -> set[str]:
        """The owners of these that have other graphs here, too."""
        names, owners = {one.name for one in graphs}, {one.owner for one in graphs}
        return {owner for name, owner in self._owners.items() if owner in owners and name not in names}

    def start_over(self) -> None:
        """Empty the store. Raises OSError if files can't be removed."""
        self._store = None
        _remove(self.copy_place)
        _remove(self._place)
        self._open()

    def drop(self, names: Sequence[str], seconds: float) -> None:
        """Remove these graphs in order until the time is up; always at least one."""
        until = time.monotonic() + seconds
        with self._writing():
            for name in names:
                self._forget(name)
                if time.monotonic() >= until:
                    return

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Mark the store while writing: one left incomplete by a kill or failure is rebuilt when opened."""
        writing = mark(STORE, WRITING, "now")
        if writing in self._store:
            raise ValueError("an earlier writing failed")
        self._store.add(writing)
        yield
        self._store.remove(writing)

    @property
    def copy_place(self) -> Path:
        """The place for a copy of the store."""
        return self._place.with_suffix(".copy")

    def before_copy(self) -> Path | None:
        """A snapshot to copy to `copy_place`, which is emptied; None if the disk has no room for that."""
        _remove(self.copy_place)
        folder = self.snapshot()
        size = sum(path.stat().st_size for path in folder.iterdir())
        if shutil.disk_usage(folder).free >= _ROOM * size:
            return folder
        shutil.rmtree(folder)
        return None

    def take_copy(self) -> None:
        """Continue with the copy, which has no trace of dropped graphs."""
        self._store = None
        _remove(self._place)
        self.copy_place.rename(self._place)
        self._open()

    def put(self, graphs: Mapping[VisibleGraph, Sequence[str]]) -> None:
        """Store these graphs with their statements, as `triples.lines` writes them."""
        with self._writing():
            for graph in graphs:
                self._forget(graph.name)
            load(self._store, graphs)
        for graph in graphs:
            self._stamps[graph.name], self._owners[graph.name] = graph.stamp, graph.owner
            self._count(graph.owner, graph.stamp, 1)

    def lend(self, names: Iterable[str]) -> Path:
        """Let another process write to the returned folder until `take_back`.

        Graphs with these names are dropped, because that process rewrites them. If it fails, or the folder
        isn't taken back, the store starts over when it is reopened.
        """
        for name in names:
            self._forget(name)
        self._store.add(mark(STORE, WRITING, "now"))
        self._store.flush()
        self._store = None
        return self._place

    def take_back(self) -> None:
        """Continue with what another process has completely written."""
        store = _opened(self._place)
        store.remove(mark(STORE, WRITING, "now"))
        del store
        self._open()

    def _count(self, owner: str, stamp: str, more: int) -> None:
        count, seals = self._sums.get(owner, (0, 0))
        self._sums[owner] = (count + more, seals + more * seal_of(stamp))

    def _forget(self, name: str) -> None:
        """Remove this graph; its owner's graph keeps what another document of the owner says, too."""
        import pyoxigraph as ox

        if name not in self._stamps:
            return
        self._store.add(mark(STORE, SPENT, "yes"))
        self.spent = True
        owner, stamp = self._owners[name], self._stamps[name]
        others = [other for other, its in self._owners.items() if its == owner and other != name]
        for quad in self._store.quads_for_pattern(None, None, None, ox.NamedNode(name)):
            if not self._says_one(others, quad, owner):
                self._store.remove(_in(quad, owner))
        self._store.remove_graph(ox.NamedNode(name))
        self._store.remove(mark(name, STAMP, stamp))
        self._store.remove(mark(name, OWNER, owner))
        del self._owners[name], self._stamps[name]
        self._count(owner, stamp, -1)

    def _says_one(self, others: Sequence[str], quad: Any, owner: str) -> bool:
        """Whether another graph of the owner contains this statement.

        Both the owner's graphs and those that contain the statement may be thousands; they are searched in
        parallel until the smaller set ends.
        """
        sayers = self._store.quads_for_pattern(quad.subject, quad.predicate, quad.object, None)
        for other, sayer in zip(others, sayers, strict=False):
            name = sayer.graph_name.value
            if name != quad.graph_name.value and self._owners.get(name) == owner:
                return True
            if _in(quad, other) in self._store:
                return True
        return False

    def snapshot(self) -> Path:
        """Make a snapshot of the store for other processes to read; returns its folder."""
        self._snapshots += 1
        self._snapshot_folder.mkdir(parents=True, exist_ok=True)
        folder = self._snapshot_folder / str(self._snapshots)
        self._store.flush()
        self._store.backup(str(folder))
        return folder

    @property
    def _snapshot_folder(self) -> Path:
        return self._place.with_suffix(".snapshots")


def load(store: Any, graphs: Mapping[VisibleGraph, Sequence[str]]) -> None:
    """Write each statement to its document's graph and its owner's, and the graphs' states.

    Passed as one text, since Oxigraph lets other threads run while it parses that, but not while it takes
    objects.
    """
    import pyoxigraph as ox

    text = "".join(
        f"{line} <{graph}> .\n"
        for one, lines in graphs.items()
        for graph in (one.name, one.owner)
        for line in lines
    )
    store.bulk_load(text.encode(), format=ox.RdfFormat.N_QUADS, lenient=True)
    store.extend(
        quad
        for one in graphs
        for quad in (mark(one.name, STAMP, one.stamp), mark(one.name, OWNER, one.owner))
    )


def fill(place: str, rows: str) -> bool:
    """Write graphs (a file of `filling.write`) to the store in a lent folder. Runs in its own process, as
    thousands of graphs take a core a minute.
    """
    store = _opened(Path(place))
    load(store, {one: lines(graph_rows) for one, graph_rows in row_file.read(Path(rows))})
    store.flush()
    return True


def copy(source: str, target: str) -> bool:
    """Copy the statements of a snapshot to a new store. Runs in its own process, as it keeps a core busy.

    Raises FileExistsError if there is something at the target.
    """
    import pyoxigraph as ox

    Path(target).mkdir(exist_ok=True)
    if any(Path(target).iterdir()):
        raise FileExistsError(target)
    new_store, reading = _opened(Path(target)), ox.Store.read_only(source)
    coming, going = os.pipe()

    def write() -> None:
        with os.fdopen(going, "wb") as end:
            reading.dump(end, format=ox.RdfFormat.N_QUADS)

    with ThreadPoolExecutor(1) as writers, os.fdopen(coming, "rb") as start:
        writing = writers.submit(write)
        new_store.bulk_load(start, format=ox.RdfFormat.N_QUADS, lenient=True)
        writing.result()
    new_store.remove(mark(STORE, SPENT, "yes"))
    new_store.flush()
    return True


def discard_unused(folder: Path, current: Collection[tuple[str, str]]) -> None:
    """Remove unused stores that contain anything but these graphs and states.

    Raises OSError if one can't be removed.
    """
    for lock in folder.glob("*.lock"):
        with lock.open("a") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue  # in use by a process, which clears it itself
            _remove(lock.with_suffix(".snapshots"))
            _remove(lock.with_suffix(".copy"))
            place = lock.with_suffix("")
            if place.exists() and not _holds_only(place, current):
                _remove(place)


def _holds_only(place: Path, current: Collection[tuple[str, str]]) -> bool:
    try:
        store = _opened(place)
        marked = read_marks(store, WRITING) or read_marks(store, SPENT)
        return not marked and all(one in current for one in read_marks(store, STAMP).items())
    except BROKEN:
        return False


def _remove(place: Path) -> None:
    if place.exists():
        shutil.rmtree(place)


def _opened(place: Path) -> Any:
    import pyoxigraph

    return pyoxigraph.Store(str(place))


def _in(quad: Any, graph: str) -> Any:
    import pyoxigraph as ox

    return ox.Quad(quad.subject, quad.predicate, quad.object, ox.NamedNode(graph))
