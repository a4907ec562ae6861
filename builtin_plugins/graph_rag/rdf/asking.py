"""SPARQL over the graphs that the caller sees: the graphs are the dataset, so nothing else can be named."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from kernel.sdk import (
    Caller,
    ChildFailed,
    ChildLimits,
    Children,
    Platform,
    ResourceKey,
    Unavailable,
    Unprocessable,
)

from ..errors import QueryTooExpensive
from ..settings import GraphSettings
from ..storing.access import sight_of
from .endpoint import ENDPOINT, RESULTS, SparqlEndpoint
from .live import RDF_GRAPHS
from .rows import Listed, seen

_OUTPUT = 32 * 1024 * 1024
_ASK = "builtin_plugins.graph_rag.rdf.child:ask"
_READ = "builtin_plugins.graph_rag.rdf.child:read_query"


@dataclass(frozen=True, slots=True)
class SparqlAnswer:
    """Results for SELECT and ASK, a text of RDF for the others; `truncated` where there were more rows."""

    results: dict[str, Any] | None
    graph: str | None
    truncated: bool


async def ask(caller: Caller, query: str, media_type: str) -> SparqlAnswer:
    """Answer a query. Raises Unprocessable, QueryTooExpensive, Unavailable."""
    platform = caller.platform
    sight = await sight_of(caller)
    graphs = await platform.database.snapshot(seen, sight)
    settings = platform.settings_of(GraphSettings)
    names = [one.name for one in graphs]
    task: dict[str, Any] = {
        "query": query,
        "graphs": names,
        "merged": names,
        "format": media_type,
        "rows": settings.sparql_rows,
    }
    job = platform.scratch.new(".json")
    try:
        endpoint = platform.resource(ENDPOINT)
        if endpoint is not None:
            await asyncio.to_thread(job.write_text, json.dumps(task), encoding="utf-8")
            return await _ask_endpoint(platform, endpoint, graphs, task, str(job))
        async with platform.resource(RDF_GRAPHS).snapshot(graphs) as (snapshot, merged):
            task["merged"] = merged
            await asyncio.to_thread(job.write_text, json.dumps(task), encoding="utf-8")
            found = _accepted(await call_child(platform, _ASK, str(snapshot), str(job)))
    finally:
        await asyncio.to_thread(job.unlink, missing_ok=True)
    return SparqlAnswer(found.get("results"), found.get("graph"), found["truncated"])


async def _ask_endpoint(
    platform: Platform, endpoint: SparqlEndpoint, graphs: Sequence[Listed], task: dict[str, Any], job: str
) -> SparqlAnswer:
    read = _accepted(await call_child(platform, _READ, job))
    await endpoint.bring(graphs)
    asks = read["form"] in ("SELECT", "ASK")
    accept = RESULTS if asks else task["format"]
    answer = await endpoint.ask(task["query"], read["default"], read["named"], accept)
    if not asks:
        return SparqlAnswer(None, answer.decode("utf-8", "replace"), False)
    try:
        results = json.loads(answer)
        rows = results["results"]["bindings"] if read["form"] == "SELECT" else []
    except (ValueError, KeyError, TypeError):
        raise Unavailable("The SPARQL server sent an answer that can't be read") from None
    truncated = len(rows) > task["rows"]
    del rows[task["rows"] :]
    return SparqlAnswer(
        {k: results[k] for k in ("head", "results", "boolean") if k in results}, None, truncated
    )


def _accepted(found: dict[str, Any]) -> dict[str, Any]:
    if "refused" in found:
        raise Unprocessable.field(("body", "query"), str(found["refused"]))
    return found


async def call_child(platform: Platform, target: str, *arguments: Any) -> dict[str, Any]:
    """Call a function over RDF in a child process. Raises QueryTooExpensive, Unavailable."""
    settings = platform.settings_of(GraphSettings)
    seconds = settings.sparql_seconds
    limits = ChildLimits(settings.sparql_memory_mb, seconds, seconds, output_bytes=_OUTPUT)
    try:
        found: dict[str, Any] = await platform.resource(RDF_CHILDREN).call(target, *arguments, limits=limits)
    except ChildFailed as error:
        if error.reason in _TOO_MUCH:
            raise QueryTooExpensive(_TOO_MUCH[error.reason]) from None
        raise Unavailable("The work on RDF could not be done") from None
    return found


_TOO_MUCH = {
    "timeout": "That took too long; narrow the query, or add LIMIT",
    "memory": "That needed too much memory; narrow the query, or add LIMIT",
    "crashed": "That is nested too deeply, or needs too much memory; make it simpler",
    "output": "The answer is too large; add LIMIT",
}


@asynccontextmanager
async def open_children(_platform: Platform) -> AsyncIterator[Children]:
    """Processes in which queries run."""
    preload = ("pyoxigraph", "rdflib.plugins.sparql.parser", "builtin_plugins.graph_rag.rdf.child")
    async with aclosing(Children(preload)) as children:
        yield children


RDF_CHILDREN: ResourceKey[Children] = ResourceKey("graph-rag query processes")
