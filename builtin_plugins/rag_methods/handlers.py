"""The route of what `auto` has decided, part of the service `rag-pipeline`."""

from __future__ import annotations

from builtin_plugins.rag_methods.decisions import DECISIONS, DecisionStats
from kernel.sdk import AUTHENTICATED, Context, RouteTable

routes = RouteTable("RAG", service="rag-pipeline")


@routes.get("/decision-stats", access=AUTHENTICATED, returns=DecisionStats)
async def decision_stats(ctx: Context) -> DecisionStats:
    """Show what the model decided for the method `auto` in this process since it started. Decisions by rules
    are not counted.
    """
    return ctx.resource(DECISIONS).stats()
