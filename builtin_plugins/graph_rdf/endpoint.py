"""An external SPARQL 1.1 server instead of the embedded store, synchronized with the rows before each query.

Each graph contains its own stamp, written in the same request (SPARQL 1.1 Graph Store HTTP Protocol), so any
process can see what is out of date there, and writing the same graph twice does no harm.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlencode

from builtin_plugins.graph_rag.api import GRAPHS_GONE
from kernel.sdk import (
    OUTGOING,
    CallLimits,
    NotConfigured,
    OutgoingClient,
    OutgoingError,
    Platform,
    ResourceKey,
    Unavailable,
    Unhealthy,
    Unprocessable,
)

from .clearing import Clearing
from .marks import STAMP
from .rows import VisibleGraph, rows_of, there
from .settings import RdfSettings
from .triples import lines

log = logging.getLogger("platform.graph_rag")

_NOTHING = "urn:platform:nothing"  # an empty dataset would mean all graphs on the server
RESULTS = "application/sparql-results+json"
_STAMPS = f"SELECT ?g ?s WHERE {{ GRAPH ?g {{ ?g <{STAMP}> ?s }} }}"
_BYTES = 64 * 1024 * 1024


class SparqlEndpoint:
    """One server, over an HTTP client that the caller opens and closes."""

    def __init__(self, platform: Platform, client: OutgoingClient, settings: RdfSettings) -> None:
        self._platform = platform
        self._client = client
        self._query_url = settings.sparql_url or ""
        self._store_url = settings.sparql_store_url or ""
        key = settings.sparql_key
        self._headers = {} if key is None else {"Authorization": f"Bearer {key.get_secret_value()}"}
        self._limits = CallLimits(total_seconds=settings.sparql_seconds, connect_seconds=5, body_bytes=_BYTES)
        self._turn = asyncio.Lock()
        self.clearing = Clearing("the SPARQL server", self._clear)

    async def bring(self, graphs: Sequence[VisibleGraph]) -> None:
        """Bring the listed graphs on the server up to date. Raises Unavailable."""
        async with self._turn:
            stamps = await self._stamps()
            for graph in graphs:
                if stamps.get(graph.name) != graph.stamp:
                    await self._put(graph)

    async def ask(self, query: str, default: Sequence[str], named: Sequence[str], accept: str) -> bytes:
        """The answer to a checked query over these graphs. Raises Unavailable, Unprocessable."""
        form = [
            ("query", query),
            *(("default-graph-uri", name) for name in default or (_NOTHING,)),
            *(("named-graph-uri", name) for name in named or (_NOTHING,)),
        ]
        return await self._send(
            "POST", self._query_url, urlencode(form), "application/x-www-form-urlencoded", accept
        )

    async def check(self) -> None:
        """Raise Unavailable if the server doesn't answer."""
        await self.ask("ASK {}", (), (), RESULTS)

    async def _stamps(self) -> dict[str, str]:
        body = urlencode({"query": _STAMPS})
        kind = "application/x-www-form-urlencoded"
        answer = await self._send("POST", self._query_url, body, kind, RESULTS)
        try:
            rows = json.loads(answer)["results"]["bindings"]
            return {row["g"]["value"]: row["s"]["value"] for row in rows}
        except (ValueError, KeyError, TypeError):
            raise Unavailable("The SPARQL server sent an unreadable response") from None

    async def _put(self, graph: VisibleGraph) -> None:
        rows = await self._platform.database.snapshot(rows_of, graph.id)
        if rows is None:
            return
        stamp = rows.graph.stamp
        body = await asyncio.to_thread(lambda: _written(graph.name, stamp, lines(rows)))
        await self._send("PUT", self._graph_url(graph.name), body, "application/n-triples", "*/*")

    def _graph_url(self, name: str) -> str:
        joint = "&" if "?" in self._store_url else "?"
        return f"{self._store_url}{joint}{urlencode({'graph': name})}"

    async def _clear(self) -> None:
        """Remove deleted graphs from the server. Raises Unavailable."""
        async with self._turn:
            current = await self._platform.database.read(there)
            for name, stamp in (await self._stamps()).items():
                if (name, stamp) not in current:
                    await self._send("DELETE", self._graph_url(name), "", "text/plain", "*/*")

    async def _send(self, method: str, url: str, body: str | bytes, kind: str, accept: str) -> bytes:
        headers = {**self._headers, "Content-Type": kind, "Accept": accept}
        try:
            reply = await self._client.call(method, url, headers=headers, body=body, limits=self._limits)
            async with reply:
                answer = await reply.read()
        except OutgoingError as error:
            log.warning("the SPARQL server does not answer: %s", type(error).__name__)
            raise Unavailable("The SPARQL server does not answer") from None
        if reply.status == 400 and method == "POST":
            raise Unprocessable.field(("body", "query"), "the SPARQL server does not understand the query")
        if reply.status >= 300 and not (method == "DELETE" and reply.status == 404):
            log.warning("the SPARQL server refused %s with status %d", method, reply.status)
            raise Unavailable("The SPARQL server refuses the request")
        return answer


def _written(name: str, stamp: str, rows: Sequence[str]) -> bytes:
    return " .\n".join([f'<{name}> <{STAMP}> "{stamp}"', *rows, ""]).encode()


@asynccontextmanager
async def open_endpoint(platform: Platform) -> AsyncIterator[SparqlEndpoint | None]:
    """Open the external server, if the operator configured one; notified of every change in any process."""
    settings = platform.settings_of(RdfSettings)
    if settings.sparql_url is None or settings.sparql_store_url is None:
        yield None
        return
    named = (settings.sparql_url, settings.sparql_store_url)
    async with platform.resource(OUTGOING).client("sparql", named=named) as client:
        endpoint = SparqlEndpoint(platform, client, settings)
        platform.notices.listen(GRAPHS_GONE, endpoint.clearing.note)
        endpoint.clearing.note()
        try:
            yield endpoint
        finally:
            await endpoint.clearing.close()


ENDPOINT: ResourceKey[SparqlEndpoint | None] = ResourceKey("graph-rag SPARQL server")


async def check_server(platform: Platform) -> None:
    """Raise Unhealthy if the configured server doesn't answer."""
    endpoint = platform.resource(ENDPOINT)
    if endpoint is None:
        raise NotConfigured()
    try:
        await endpoint.check()
    except Unavailable as error:
        raise Unhealthy(str(error.detail)) from None
