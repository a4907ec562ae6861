"""A large graph is exported in parts, beside the event loop."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pyoxigraph as ox
import pytest

from builtin_plugins.graph_rdf import exporting
from builtin_plugins.graph_rdf.reading import MEDIA_TYPES
from builtin_plugins.graph_rdf.rows import GraphRows
from builtin_plugins.graph_rdf.triples import quads
from kernel.testing import Start, somebody
from tests.builtin_plugins.graph_rag.graph_support import API, INSTITUTE, STATION, construct


@pytest.mark.parametrize("name", ["turtle", "n-quads", "json-ld"])
async def test_parts(name: str, start_platform: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Together they say what a single one says, and the loop derives no statement itself."""
    running = await start_platform("graph_rdf")
    ann = await somebody(running)
    await construct(ann, "a", INSTITUTE)
    await construct(ann, "b", STATION)
    whole = (await ann.get(f"{API}/graph/export?format={name}")).body

    threads: set[threading.Thread] = set()

    def noted(rows: GraphRows) -> Iterator[Any]:
        for quad in quads(rows):
            threads.add(threading.current_thread())
            yield quad

    monkeypatch.setattr(exporting, "quads", noted)
    monkeypatch.setattr(exporting, "_STATEMENTS", 7)
    parts = (await ann.get(f"{API}/graph/export?format={name}")).body

    kind = ox.RdfFormat.from_media_type(MEDIA_TYPES[name])
    assert set(ox.parse(parts, format=kind)) == set(ox.parse(whole, format=kind))
    assert threads and threading.current_thread() not in threads
