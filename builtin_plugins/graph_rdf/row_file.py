"""Writes rows of graphs to a file, from which a child process without a database derives RDF."""

from __future__ import annotations

import json
from collections import namedtuple
from collections.abc import Iterator, Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any

from .rows import GraphRows, VisibleGraph


def write(file: Path, graphs: Mapping[VisibleGraph, GraphRows]) -> None:
    """Write a line for each graph: its `VisibleGraph`, and its parts, each with its column names."""
    with file.open("w", encoding="utf-8") as lines:
        for graph, rows in graphs.items():
            parts = [_part(part) for part in (rows.passages, rows.entities, rows.aliases, rows.relations)]
            json.dump([astuple(graph), _part([rows.graph]), *parts], lines, separators=(",", ":"))
            lines.write("\n")


def read(file: Path) -> Iterator[tuple[VisibleGraph, GraphRows]]:
    """Read what `write` has written."""
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            listed, graph, *parts = json.loads(line)
            yield VisibleGraph(*listed), GraphRows(_rows(graph)[0], *map(_rows, parts))


def _part(rows: Any) -> Any:
    return [rows[0]._fields, *map(tuple, rows)] if rows else []


def _rows(part: Any) -> list[Any]:
    if not part:
        return []
    row_type = namedtuple("Row", part[0])  # type: ignore[misc]
    return [row_type(*values) for values in part[1:]]
