"""Routes of limits on models, and of their use."""

from __future__ import annotations

from pydantic import BaseModel, Field

from builtin_plugins.models.errors import UnknownModel
from builtin_plugins.models.schemas import Constraints, ConstraintsOut, MetricsOut
from builtin_plugins.models.services import constraints, metrics
from kernel.sdk import ADMIN_OR_SERVICE, Context, RouteTable, Unavailable

routes = RouteTable("Models")


class MetricsQuery(BaseModel):
    """How far back to look."""

    days: int = Field(30, ge=1, le=366, description="Days to include, today first.")


@routes.post(
    "/models/{model_id:path}/constraints",
    access=ADMIN_OR_SERVICE,
    body=Constraints,
    returns=ConstraintsOut,
    errors=(UnknownModel, Unavailable),
)
async def set_constraints(ctx: Context, model_id: str, body: Constraints) -> ConstraintsOut:
    """Limit a model, wherever the platform calls it. Replaces all its limits; an empty body lifts them."""
    return await constraints.change(ctx, model_id, body)


@routes.get("/models/{model_id:path}/constraints", access=ADMIN_OR_SERVICE, returns=ConstraintsOut)
async def get_constraints(ctx: Context, model_id: str) -> ConstraintsOut:
    """Show the limits on a model."""
    return await constraints.show(ctx, model_id)


@routes.get(
    "/models/{model_id:path}/metrics", access=ADMIN_OR_SERVICE, query=MetricsQuery, returns=MetricsOut
)
async def get_metrics(ctx: Context, model_id: str, query: MetricsQuery) -> MetricsOut:
    """Show calls, errors, tokens and times of a model, by day and by the part of the platform that asked."""
    return await metrics.show(ctx, model_id, query.days)
