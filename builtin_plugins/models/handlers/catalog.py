"""Routes of models."""

from __future__ import annotations

from builtin_plugins.models.errors import FineTuneMissing, ModelElsewhere, ModelNotAllowed, UnknownModel
from builtin_plugins.models.schemas import (
    FineTuneRequest,
    ModelChanged,
    ModelDetailsOut,
    ModelPage,
    TestOut,
    TestRequest,
)
from builtin_plugins.models.services import catalog
from builtin_plugins.models.services.model_calls import MODELS
from kernel.sdk import (
    ADMIN_OR_SERVICE,
    AUTHENTICATED,
    PUBLIC,
    Context,
    Message,
    PageQuery,
    Rate,
    RouteTable,
    TooManyRequests,
    Unavailable,
)

routes = RouteTable("Models")


@routes.get("/models", access=PUBLIC, query=PageQuery, returns=ModelPage, errors=(Unavailable,), long=True)
async def list_models(ctx: Context, query: PageQuery) -> ModelPage:
    """List the models of all runtimes, in the runtimes' order."""
    return await catalog.list_models(ctx, query)


@routes.post(
    "/models/fine-tune",
    access=ADMIN_OR_SERVICE,
    body=FineTuneRequest,
    returns=Message,
    errors=(FineTuneMissing,),
)
async def fine_tune(ctx: Context, body: FineTuneRequest) -> Message:
    """Not implemented."""
    raise FineTuneMissing()


@routes.post(
    "/models/{model_id:path}/test",
    access=AUTHENTICATED,
    body=TestRequest | None,
    returns=TestOut,
    errors=(UnknownModel, ModelNotAllowed, TooManyRequests, Unavailable),
    rate=Rate(5),
    token_scopes=("ask",),
    long=True,
)
async def test(ctx: Context, model_id: str, body: TestRequest | None) -> TestOut:
    """Send a prompt to a model and return its answer."""
    return await catalog.try_out(ctx, model_id, (body or TestRequest()).prompt)


@routes.get(
    "/models/{model_id:path}",
    access=PUBLIC,
    returns=ModelDetailsOut,
    errors=(UnknownModel, Unavailable),
    long=True,
)
async def get_model(ctx: Context, model_id: str) -> ModelDetailsOut:
    """Show a model with the details that its runtime reports."""
    return await catalog.describe(ctx, model_id)


@routes.delete(
    "/models/{model_id:path}",
    access=ADMIN_OR_SERVICE,
    returns=ModelChanged,
    errors=(UnknownModel, ModelElsewhere, Unavailable),
    long=True,
)
async def delete_model(ctx: Context, model_id: str) -> ModelChanged:
    """Delete a model from its runtime, or its file from `PLATFORM_HOME/models`."""
    return await catalog.delete(ctx.caller, ctx.resource(MODELS), model_id)
