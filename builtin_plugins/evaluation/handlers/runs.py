"""Routes of evaluation runs, part of the service `rag-pipeline`."""

from __future__ import annotations

from aiohttp import web

from builtin_plugins.evaluation.errors import (
    NoKnowledgeBases,
    NothingToAsk,
    NotSetOwner,
    RunNotFound,
    SetNotFound,
)
from builtin_plugins.evaluation.schemas import (
    CompareQuery,
    Comparison,
    OfBase,
    ResultOut,
    ResultQuery,
    RunCreate,
    RunDetail,
    RunOut,
)
from builtin_plugins.evaluation.services import runs
from builtin_plugins.evaluation.services.pictures import plot, table
from kernel.sdk import AUTHENTICATED, Context, Page, RouteTable

routes = RouteTable("Evaluation", service="rag-pipeline")

_RUNS = "/evaluation/runs"
_ONE = _RUNS + "/{run_id:uuid}"


@routes.post(
    _RUNS,
    access=AUTHENTICATED,
    body=RunCreate,
    returns=RunOut,
    status=202,
    errors=(SetNotFound, NotSetOwner, NothingToAsk, NoKnowledgeBases),
)
async def create(ctx: Context, body: RunCreate) -> RunOut:
    """Ask every question of a set in every configuration, in the background."""
    return await runs.create(ctx.caller, body)


@routes.get(_RUNS, access=AUTHENTICATED, query=OfBase, returns=Page[RunOut], errors=(NoKnowledgeBases,))
async def list_all(ctx: Context, query: OfBase) -> Page[RunOut]:
    """List the runs over the knowledge bases that the caller sees, newest first."""
    return await runs.list_page(ctx.caller, query)


@routes.get(_ONE, access=AUTHENTICATED, returns=RunDetail, errors=(RunNotFound, NoKnowledgeBases))
async def get(ctx: Context, run_id: str) -> RunDetail:
    """Show a run: the measures of each configuration with 95 % intervals, and how `auto` uses them."""
    return await runs.get(ctx.caller, run_id)


@routes.delete(_ONE, access=AUTHENTICATED, status=204, errors=(RunNotFound, NotSetOwner, NoKnowledgeBases))
async def remove(ctx: Context, run_id: str) -> None:
    """Delete a run with its results."""
    await runs.remove(ctx.caller, run_id)


@routes.get(
    _ONE + "/results",
    access=AUTHENTICATED,
    query=ResultQuery,
    returns=Page[ResultOut],
    errors=(RunNotFound, NoKnowledgeBases),
)
async def results(ctx: Context, run_id: str, query: ResultQuery) -> Page[ResultOut]:
    """List what was measured question by question in one configuration, worst first."""
    return await runs.results(ctx.caller, run_id, query)


@routes.get(
    _ONE + "/comparison",
    access=AUTHENTICATED,
    query=CompareQuery,
    returns=Comparison,
    errors=(RunNotFound, NoKnowledgeBases),
)
async def compare(ctx: Context, run_id: str, query: CompareQuery) -> Comparison:
    """Compare with another run: differences with their significance, and the questions that got worse."""
    return await runs.compare(ctx.caller, run_id, query)


@routes.get(
    _ONE + "/table.md",
    access=AUTHENTICATED,
    returns=str,
    media_type="text/markdown",
    errors=(RunNotFound, NoKnowledgeBases),
)
async def show_table(ctx: Context, run_id: str) -> web.Response:
    """Download the measures as a table in Markdown."""
    run = await runs.get(ctx.caller, run_id)
    return web.Response(text=table(run.summaries), content_type="text/markdown")


@routes.get(
    _ONE + "/plot.svg",
    access=AUTHENTICATED,
    returns=str,
    media_type="image/svg+xml",
    errors=(RunNotFound, NoKnowledgeBases),
)
async def show_plot(ctx: Context, run_id: str) -> web.Response:
    """Download the measures as a plot."""
    run = await runs.get(ctx.caller, run_id)
    return web.Response(text=plot(run.summaries), content_type="image/svg+xml")
