"""SPARQL over the graphs that the caller sees: they are the dataset, so nothing else can be queried."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builtin_plugins.graph_rag.api import GraphSight, sight_of
from kernel.sdk import (
    Caller,
    ChildFailed,
    ChildLimits,
    Platform,
    Unavailable,
    Unprocessable,
)
from kernel.sdk.operations import Reach

from .children import RDF_CHILDREN
from .endpoint import ENDPOINT, RESULTS, SparqlEndpoint
from .errors import QueryTooExpensive
from .live import RDF_GRAPHS
from .query_slots import QUERY_TURNS
from .rows import visible_graphs
from .settings import RdfSettings

_OUTPUT = 32 * 1024 * 1024
_ANSWER = "builtin_plugins.graph_rdf.child:ask"
_READ = "builtin_plugins.graph_rdf.child:read_query"


@dataclass(frozen=True, slots=True)
class SparqlAnswer:
    """Results of SELECT and ASK, RDF text for the others; `truncated` if there were more rows."""

    results: dict[str, Any] | None
    graph: str | None
    truncated: bool


async def ask(caller: Caller, query: str, media_type: str) -> SparqlAnswer:
    """Answer a query. Raises Unprocessable, QueryTooExpensive, TooManyQueries, Unavailable."""
    async with caller.platform.resource(QUERY_TURNS).turn(caller.principal.subject):
        return await _ask(caller, query, media_type)


async def _ask(caller: Caller, query: str, media_type: str) -> SparqlAnswer:
    platform, sight = caller.platform, await sight_of(caller)
    settings = platform.settings_of(RdfSettings)
    task: dict[str, Any] = {"query": query, "format": media_type, "rows": settings.sparql_rows}
    endpoint = platform.resource(ENDPOINT)
    if endpoint is not None:
        return await _ask_endpoint(platform, endpoint, sight, task)
    async with platform.resource(RDF_GRAPHS).snapshot(sight) as (snapshot, merged):
        task["merged"] = merged
        answer = await _work(platform, _ANSWER, task, snapshot)
    return SparqlAnswer(answer.get("results"), answer.get("graph"), answer["truncated"])


async def _work(platform: Platform, target: str, task: dict[str, Any], *folders: Path) -> dict[str, Any]:
    """Run a task in a child process. Raises Unprocessable, QueryTooExpensive, Unavailable."""
    job = platform.scratch.new(".json")
    try:
        await asyncio.to_thread(job.write_text, json.dumps(task), encoding="utf-8")
        answer = await call_child(platform, target, *folders, job)
    finally:
        await asyncio.to_thread(job.unlink, missing_ok=True)
    if "refused" in answer:
        raise Unprocessable.field(("body", "query"), str(answer["refused"]))
    return answer


async def _ask_endpoint(
    platform: Platform, endpoint: SparqlEndpoint, sight: GraphSight, task: dict[str, Any]
) -> SparqlAnswer:
    graphs = await platform.database.snapshot(visible_graphs, sight)
    names = [one.name for one in graphs]
    read = await _work(platform, _READ, {**task, "graphs": names})
    await endpoint.bring(graphs)
    asks = read["form"] in ("SELECT", "ASK")
    accept = RESULTS if asks else task["format"]
    answer = await endpoint.ask(read["text"], read["default"], read["named"], accept)
    if not asks:
        return SparqlAnswer(None, answer.decode("utf-8", "replace"), False)
    try:
        results = json.loads(answer)
        rows = results["results"]["bindings"] if read["form"] == "SELECT" else []
    except (ValueError, KeyError, TypeError):
        raise Unavailable("The SPARQL server sent an unreadable response") from None
    truncated = len(rows) > task["rows"]
    del rows[task["rows"] :]
    return SparqlAnswer(
        {k: results[k] for k in ("head", "results", "boolean") if k in results}, None, truncated
    )


async def call_child(platform: Platform, target: str, *arguments: Path | str | int) -> dict[str, Any]:
    """Call a function over RDF in a child process, which may read the files and folders among its arguments.

    Raises QueryTooExpensive, Unavailable.
    """
    places = [str(one.absolute()) for one in arguments if isinstance(one, Path)]
    call_arguments = [str(one.absolute()) if isinstance(one, Path) else one for one in arguments]
    settings = platform.settings_of(RdfSettings)
    seconds = settings.sparql_seconds
    limits = ChildLimits(settings.sparql_memory_mb, seconds, seconds, output_bytes=_OUTPUT)
    try:
        answer: dict[str, Any] = await platform.resource(RDF_CHILDREN).call(
            target, *call_arguments, limits=limits, reach=Reach(places)
        )
    except ChildFailed as error:
        if error.reason in _TOO_MUCH:
            raise QueryTooExpensive(_TOO_MUCH[error.reason]) from None
        raise Unavailable("The RDF request failed") from None
    return answer


_TOO_MUCH = {
    "timeout": "The query took too long; narrow it, or add LIMIT",
    "memory": "The query needed too much memory; narrow it, or add LIMIT",
    "crashed": "The query is nested too deeply, or needs too much memory; simplify it",
    "output": "The answer is too large; add LIMIT",
}
