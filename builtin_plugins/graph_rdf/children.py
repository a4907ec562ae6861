"""The processes in which queries run and stores are copied."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

from kernel.sdk import Children, Platform, ResourceKey


@asynccontextmanager
async def open_children(_platform: Platform) -> AsyncIterator[Children]:
    """Each is forked from a process that has already imported the libraries."""
    preload = (
        "pyoxigraph",
        "rdflib.plugins.sparql.parser",
        "builtin_plugins.graph_rdf.child",
        "builtin_plugins.graph_rdf.reading",
    )
    async with aclosing(Children(preload)) as children:
        yield children


RDF_CHILDREN: ResourceKey[Children] = ResourceKey("graph-rag query processes")
