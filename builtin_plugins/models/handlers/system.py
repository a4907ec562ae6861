"""Routes about the service itself."""

from __future__ import annotations

from builtin_plugins.models.schemas import RootOut
from builtin_plugins.models.services.model_calls import MODELS
from kernel.sdk import PUBLIC, Context, RouteTable

routes = RouteTable("Models")
VERSION = "0.2.0"


@routes.get("/", access=PUBLIC, returns=RootOut)
async def root(ctx: Context) -> RootOut:
    """Name and state of the service."""
    available = bool(await ctx.resource(MODELS).healthy())
    return RootOut(name="model-management", version=VERSION, status="running", ollama_available=available)
