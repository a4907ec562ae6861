"""Stores RDF as a graph of the caller's: it is read in a child process, and kept as rows."""

from __future__ import annotations

import asyncio

from builtin_plugins.graph_rag.api import Constructed, NothingStated, store_statements
from kernel.sdk import Caller, Unprocessable

from .asking import call_child
from .query_slots import QUERY_TURNS
from .schemas import ImportRequest

_READ = "builtin_plugins.graph_rdf.reading:read"
_MOST_STATEMENTS = 50_000


async def take_in(caller: Caller, request: ImportRequest) -> Constructed:
    """Store RDF as a graph of the caller's, replacing an earlier one.

    Raises Unprocessable, QueryTooExpensive, TooManyQueries, Unavailable.
    """
    platform = caller.platform
    file = platform.scratch.new(".rdf")
    try:
        await asyncio.to_thread(file.write_text, request.content, encoding="utf-8")
        async with platform.resource(QUERY_TURNS).turn(caller.principal.subject):
            content = await call_child(platform, _READ, file, request.format, _MOST_STATEMENTS)
    finally:
        await asyncio.to_thread(file.unlink, missing_ok=True)
    if "refused" in content:
        raise Unprocessable.field(("body", "content"), str(content["refused"]))
    try:
        return await store_statements(caller, request.document_id, content, request.title, request.source)
    except NothingStated:
        raise Unprocessable.field(("body", "content"), "has no statement between two named things") from None
