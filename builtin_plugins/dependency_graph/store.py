"""The graph as RDF in Oxigraph, on disk: derived from rows, rebuilt when lost, broken or out of date.

A named graph for each plugin contains its edges, so that a change replaces one graph. Oxigraph lets only one
process write to a folder, so each process takes the first free one.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from kernel.sdk import take_slot

from .index import Link

log = logging.getLogger("platform.dependency_graph")

_BASE = "urn:platform:graph:"
_MOST_FOLDERS = 64

# What Oxigraph raises for a folder that it can't read.
BROKEN = (OSError, ValueError, RuntimeError)


class GraphStore:
    """The RDF store of one process. Its methods block: call them in a thread."""

    def __init__(self, folder: Path) -> None:
        self._slot = take_slot(folder, _MOST_FOLDERS)
        self._place = folder / str(self._slot.number)
        self._store: Any = None

    def open(self) -> None:
        """Open the store. One that can't be read is replaced by an empty one."""
        import pyoxigraph

        try:
            self._store = pyoxigraph.Store(str(self._place))
            self.version()
        except BROKEN as error:
            log.warning(
                "the graph's store can't be read (%s); starting with an empty one", type(error).__name__
            )
            self._start_empty()

    def _start_empty(self) -> None:
        import pyoxigraph

        self._store = None
        shutil.rmtree(self._place, ignore_errors=True)
        self._store = pyoxigraph.Store(str(self._place))

    def close(self) -> None:
        """Let another process have the folder."""
        self._store = None
        self._slot.handle.close()

    def version(self) -> int | None:
        """The version of the rows that it was made from; None if it is incomplete."""
        found = list(self._store.quads_for_pattern(_iri("state"), _iri("version"), None, None))
        return int(found[0].object.value) if len(found) == 1 else None

    def bring_up(self, links: Mapping[str, Sequence[Link]], version: int) -> dict[str, list[Link]]:
        """All edges in the store, which is rebuilt from `links` if it is out of date or damaged."""
        try:
            if self.version() == version:
                return self.links()
        except (*BROKEN, LookupError) as error:
            log.warning("the graph's store is damaged (%s); starting with an empty one", type(error).__name__)
            self._start_empty()
        log.info("rebuilding the graph's store from %d plugins with edges", len(links))
        self.rebuild(links, version)
        return self.links()

    def rebuild(self, links: Mapping[str, Sequence[Link]], version: int) -> None:
        """Replace everything by these edges."""
        self._store.clear()
        self._store.bulk_extend(quad for source in links for quad in _quads(links[source]))
        self._stamp(version)

    def put(self, changed: Mapping[str, Sequence[Link]], version: int) -> None:
        """Replace the edges of some plugins."""
        for source, links in changed.items():
            self._store.remove_graph(_plugin(source))
            self._store.extend(_quads(links))
        self._stamp(version)

    def _stamp(self, version: int) -> None:
        import pyoxigraph

        subject, predicate, graph = _iri("state"), _iri("version"), pyoxigraph.DefaultGraph()
        for quad in list(self._store.quads_for_pattern(subject, predicate, None, None)):
            self._store.remove(quad)
        self._store.add(pyoxigraph.Quad(subject, predicate, pyoxigraph.Literal(version), graph))
        self._store.flush()

    def links(self) -> dict[str, list[Link]]:
        """All edges, by plugin."""
        found: dict[str, dict[str, str]] = {}
        for quad in self._store.quads_for_pattern(None, None, None, None):
            if quad.subject.value.startswith(f"{_BASE}edge:"):
                key = quad.predicate.value.removeprefix(_BASE)
                found.setdefault(quad.subject.value, {})[key] = quad.object.value
        made: dict[str, list[Link]] = {}
        for edge in found.values():
            source = _named(str(edge["source"]))
            link = Link(
                source,
                _named(str(edge["target"])),
                str(edge["kind"]),
                str(edge["type"]),
                str(edge["range"]) if "range" in edge else None,
            )
            made.setdefault(source, []).append(link)
        return made

    def check(self) -> None:
        """Raise OSError if the store doesn't respond."""
        if self._store is None or self.version() is None:
            raise OSError("the store is not open")


def _iri(name: str) -> Any:
    import pyoxigraph

    return pyoxigraph.NamedNode(_BASE + name)


def _plugin(plugin: str) -> Any:
    return _iri(f"plugin:{quote(plugin, safe='')}")


def _named(iri: str) -> str:
    return unquote(iri.rpartition(":")[2])


def _quads(links: Iterable[Link]) -> Iterator[Any]:
    """The statements of some edges: the plain relation, and a node with its details."""
    import pyoxigraph

    for link in links:
        graph, source = _plugin(link.source), _plugin(link.source)
        name = quote(link.target, safe="")
        target = _iri(f"{link.target_type}:{name}")
        edge = _iri(f"edge:{quote(link.source, safe='')}:{link.target_type}:{name}")
        literal = pyoxigraph.Literal
        yield pyoxigraph.Quad(source, _iri(link.kind), target, graph)
        yield pyoxigraph.Quad(edge, _iri("source"), source, graph)
        yield pyoxigraph.Quad(edge, _iri("target"), target, graph)
        yield pyoxigraph.Quad(edge, _iri("kind"), literal(link.kind), graph)
        yield pyoxigraph.Quad(edge, _iri("type"), literal(link.target_type), graph)
        if link.constraint is not None:
            yield pyoxigraph.Quad(edge, _iri("range"), literal(link.constraint), graph)
