"""Routes of RDF: queries, export, import."""

from __future__ import annotations

from aiohttp import web

from builtin_plugins.graph_rag.api import Constructed, GraphNotFound
from kernel.sdk import AUTHENTICATED, Answer, Context, RouteTable, Unavailable

from . import asking, exporting, importing, schemas
from .errors import QueryTooExpensive, TooManyQueries
from .reading import MEDIA_TYPES

routes = RouteTable("Graph-RAG", service="graph-rag")
_RESULTS = "application/sparql-results+json"
_GRAPHS = ("text/turtle", "application/n-triples", "application/ld+json")
_LARGEST = 32 * 1024 * 1024


@routes.post(
    "/graph-rag/sparql",
    access=AUTHENTICATED,
    body=schemas.SparqlRequest,
    returns=schemas.SparqlResults,
    also_media_types=(_RESULTS, *_GRAPHS),
    errors=(QueryTooExpensive, TooManyQueries, Unavailable),
    long=True,
    token_scopes=("ask",),
)
async def sparql(ctx: Context, body: schemas.SparqlRequest) -> web.StreamResponse | Answer:
    """Query the graphs that the caller sees with SPARQL.

    The default graph is all of them, and each is a named graph. SELECT and ASK return JSON; CONSTRUCT and
    DESCRIBE return Turtle, N-Triples or JSON-LD, as the header `Accept` says. SERVICE, updates, and FROM
    with graphs that the caller can't see are refused; time, memory and rows are limited (`X-Truncated:
    true`).
    """
    accepted = ctx.request.headers.get("Accept", "")
    media_type = next((media_type for media_type in _GRAPHS if media_type in accepted), _GRAPHS[0])
    answer = await asking.ask(ctx.caller, body.query, media_type)
    cut = {"X-Truncated": "true"} if answer.truncated else {}
    if answer.results is not None:
        headers = {**cut, "Content-Type": _RESULTS} if _RESULTS in accepted else cut
        return Answer(schemas.SparqlResults(**answer.results, truncated=answer.truncated), headers=headers)
    return web.Response(text=answer.graph or "", content_type=media_type, charset="utf-8", headers=cut)


@routes.get(
    "/graph-rag/graph/export",
    access=AUTHENTICATED,
    query=schemas.ExportQuery,
    returns=str,
    media_type="text/turtle",
    also_media_types=("application/n-quads", "application/ld+json"),
    errors=(GraphNotFound,),
    long=True,
    token_scopes=("ask",),
)
async def export(ctx: Context, query: schemas.ExportQuery) -> web.StreamResponse:
    """Export the graphs that the caller sees: all, or those of a knowledge base or document."""
    pieces = await exporting.export(ctx.caller, query)
    media_type = MEDIA_TYPES[query.format]
    response = web.StreamResponse(headers={"Content-Type": f"{media_type}; charset=utf-8"})
    await response.prepare(ctx.request)
    async for piece in pieces:
        await response.write(piece)
    await response.write_eof()
    return response


@routes.post(
    "/graph-rag/graph/import",
    access=AUTHENTICATED,
    body=schemas.ImportRequest,
    returns=Constructed,
    errors=(QueryTooExpensive, TooManyQueries, Unavailable),
    long=True,
    max_body=_LARGEST,
)
async def take_in(ctx: Context, body: schemas.ImportRequest) -> Constructed:
    """Store RDF as a graph of the caller: statements between named things become relations."""
    return await importing.take_in(ctx.caller, body)
