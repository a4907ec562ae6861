"""An embedded RDF store: derived from rows, one named graph for each document, a folder for each process.

Oxigraph lets one process write a folder, so each process takes the first free one, and holds a copy of its
own. Queries are answered by other processes from a snapshot: hard links to the store's files, which nobody
writes.

Oxigraph looks into each graph of a dataset for each pattern. So that a default graph of thousands of
documents is fast, every statement stands a second time in a graph of all documents of one owner: a knowledge
base, or whoever constructed them.
"""

from __future__ import annotations

import fcntl
import logging
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernel.sdk import take_slot

from .rows import Listed

log = logging.getLogger("platform.graph_rag")

_MOST_FOLDERS = 64
STAMP = "urn:platform:stamp"
"""The statement by which a graph says in which state it is."""
_OWNER = "urn:platform:owner"
_WRITING = "urn:platform:writing"

# What Oxigraph raises for a folder that it can't read.
BROKEN = (OSError, ValueError, RuntimeError)


class RdfStore:
    """The store of one process. Its methods block: call them in a thread, one at a time."""

    def __init__(self, folder: Path) -> None:
        self._slot = take_slot(folder, _MOST_FOLDERS)
        self._place = folder / str(self._slot.number)
        self._store: Any = None
        self._stamps: dict[str, str] = {}
        self._owners: dict[str, str] = {}
        self._snapshots = 0

    def open(self) -> None:
        """Open the store. One that can't be read is replaced by an empty one, and filled again by use."""
        shutil.rmtree(self._snapshot_folder, ignore_errors=True)
        try:
            self._store = _opened(self._place)
            self._stamps, self._owners = _read(self._store, STAMP), _read(self._store, _OWNER)
            if _read(self._store, _WRITING):
                raise ValueError("a process ended while it wrote")
        except BROKEN as error:
            log.warning(
                "the RDF store can't be used (%s); it is built again from the database", type(error).__name__
            )
            self.start_over()

    def close(self) -> None:
        """Let another process have the folder."""
        self._store = None
        shutil.rmtree(self._snapshot_folder, ignore_errors=True)
        self._slot.handle.close()

    def stale(self, wanted: Iterable[Listed]) -> list[Listed]:
        """Which of these graphs are not here in this state."""
        return [
            one
            for one in wanted
            if self._stamps.get(one.name) != one.stamp or self._owners.get(one.name) != one.owner
        ]

    def others(self, known: Collection[tuple[str, str]]) -> bool:
        """Whether there is anything here that is not among these graphs and states."""
        return any(one not in known for one in self._stamps.items())

    def merged(self, graphs: Sequence[Listed]) -> list[str]:
        """The fewest graphs that hold exactly what these hold.

        An owner's graph takes the place of the documents' where every document of the owner that is here is
        among `graphs`.
        """
        wanted = {one.name for one in graphs}
        partly = {owner for name, owner in self._owners.items() if name not in wanted}
        owners = dict.fromkeys(one.owner for one in graphs if one.owner not in partly)
        return [*owners, *(one.name for one in graphs if one.owner in partly)]

    def start_over(self) -> None:
        """Hold nothing. Oxigraph forgets no text, so what is deleted leaves the disk in this way alone.

        Raises OSError where the files stay.
        """
        self._store = None
        _remove(self._place)
        self._stamps, self._owners = {}, {}
        self._store = _opened(self._place)

    def put(self, graphs: Mapping[Listed, Iterable[Any]]) -> None:
        """Hold these graphs with these statements. A store that is killed halfway is built again."""
        writing = _said("urn:platform:store", _WRITING, "now")
        self._store.add(writing)
        for one in graphs:
            self._forget(one.name)
        self._load(graphs)
        self._store.extend(
            said
            for one in graphs
            for said in (_said(one.name, STAMP, one.stamp), _said(one.name, _OWNER, one.owner))
        )
        self._stamps |= {one.name: one.stamp for one in graphs}
        self._owners |= {one.name: one.owner for one in graphs}
        self._store.remove(writing)

    def _load(self, graphs: Mapping[Listed, Iterable[Any]]) -> None:
        """Write the statements by way of texts: Oxigraph reads those beside other threads, and lets none run
        while it takes objects.
        """
        import pyoxigraph as ox

        documents: list[bytes] = []
        owners: dict[str, list[bytes]] = {}
        for one, quads in graphs.items():
            found = list(quads)
            triples = [quad.triple for quad in found]
            documents.append(ox.serialize(found, format=ox.RdfFormat.N_QUADS) or b"")
            written = ox.serialize(triples, format=ox.RdfFormat.N_TRIPLES) or b""
            owners.setdefault(one.owner, []).append(written)
        self._store.bulk_load(b"".join(documents), format=ox.RdfFormat.N_QUADS, lenient=True)
        for owner, texts in owners.items():
            graph = ox.NamedNode(owner)
            self._store.bulk_load(
                b"".join(texts), format=ox.RdfFormat.N_TRIPLES, to_graph=graph, lenient=True
            )

    def _forget(self, name: str) -> None:
        """Without this graph; its owner's keeps what another document of the owner says as well."""
        import pyoxigraph as ox

        if name not in self._stamps:
            return
        owner = self._owners.pop(name)
        self._store.remove(_said(name, STAMP, self._stamps.pop(name)))
        self._store.remove(_said(name, _OWNER, owner))
        for quad in self._store.quads_for_pattern(None, None, None, ox.NamedNode(name)):
            said_by = (
                self._owners.get(other.graph_name.value)
                for other in self._store.quads_for_pattern(quad.subject, quad.predicate, quad.object, None)
            )
            if owner not in said_by:
                self._store.remove(_in(quad, owner))
        self._store.remove_graph(ox.NamedNode(name))

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


def discard_unused(folder: Path, known: Collection[tuple[str, str]]) -> None:
    """Remove the stores that no process uses, and that hold anything but these graphs and states.

    Raises OSError where one stays.
    """
    for lock in folder.glob("*.lock"):
        with lock.open("a") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue  # a process uses it, and clears it by itself
            _remove(lock.with_suffix(".snapshots"))
            place = lock.with_suffix("")
            if place.exists() and not _holds_only(place, known):
                _remove(place)


def _holds_only(place: Path, known: Collection[tuple[str, str]]) -> bool:
    try:
        store = _opened(place)
        return not _read(store, _WRITING) and all(one in known for one in _read(store, STAMP).items())
    except BROKEN:
        return False


def _remove(place: Path) -> None:
    if place.exists():
        shutil.rmtree(place)


def _opened(place: Path) -> Any:
    import pyoxigraph

    return pyoxigraph.Store(str(place))


def _read(store: Any, predicate: str) -> dict[str, str]:
    """What is said by this predicate of the graphs."""
    import pyoxigraph as ox

    found = store.quads_for_pattern(None, ox.NamedNode(predicate), None, ox.DefaultGraph())
    return {quad.subject.value: quad.object.value for quad in found}


def _in(quad: Any, graph: str) -> Any:
    import pyoxigraph as ox

    return ox.Quad(quad.subject, quad.predicate, quad.object, ox.NamedNode(graph))


def _said(subject: str, predicate: str, text: str) -> Any:
    import pyoxigraph as ox

    return ox.Quad(ox.NamedNode(subject), ox.NamedNode(predicate), ox.Literal(text), ox.DefaultGraph())
