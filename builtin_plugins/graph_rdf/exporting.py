"""Writes graphs as Turtle, N-Quads or JSON-LD, from the rows, in batches of statements."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import islice
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.graph_rag.api import Graph, GraphNotFound, GraphSight, sight_of
from kernel.sdk import Caller

from . import schemas
from .names import PREFIXES
from .reading import MEDIA_TYPES
from .rows import rows_of
from .triples import quads

_STATEMENTS: Final = 2_000  # written at once: other requests wait at most some 10 ms


async def export(caller: Caller, query: schemas.ExportQuery) -> AsyncIterator[bytes]:
    """The selected graphs that the caller sees, in pieces. Raises GraphNotFound."""
    sight = await sight_of(caller)
    ids = await caller.platform.database.snapshot(_ids, sight, query)
    if not ids:
        raise GraphNotFound()
    return _pieces(caller, ids, query.format)


def _ids(session: Session, sight: GraphSight, query: schemas.ExportQuery) -> Sequence[int]:
    where = sight.condition
    if query.kb_id is not None:
        where &= Graph.knowledge_base_id == query.kb_id
    if query.document_id is not None:
        where &= Graph.document_id == query.document_id
    return session.scalars(select(Graph.id).where(where).order_by(Graph.id)).all()


async def _pieces(caller: Caller, ids: Sequence[int], format_name: str) -> AsyncIterator[bytes]:
    """All formats can be written part by part: JSON-LD as elements of one array."""
    first = True
    for graph_id in ids:
        rows = await caller.platform.database.snapshot(rows_of, graph_id)
        if rows is None:
            continue
        left = quads(rows)
        while text := await asyncio.to_thread(_written, left, format_name):
            if format_name == "json-ld":
                text = (b"[" if first else b",") + text.strip().removeprefix(b"[").removesuffix(b"]")
            first = False
            yield text
    if format_name == "json-ld":
        yield b"[]" if first else b"]"


def _written(left: Iterator[Any], format_name: str) -> bytes:
    """The next statements; empty when there are none left."""
    import pyoxigraph as ox

    statements = list(islice(left, _STATEMENTS))
    if not statements:
        return b""
    kind = ox.RdfFormat.from_media_type(MEDIA_TYPES[format_name])
    named = format_name != "turtle"
    items = statements if named else [quad.triple for quad in statements]
    prefixes = PREFIXES if format_name == "turtle" else None
    return ox.serialize(items, format=kind, prefixes=prefixes) or b""
