"""Models by their names, pipelines among them, and embeddings."""

from __future__ import annotations

from builtin_plugins.inference.api import OPENAI_ERRORS
from builtin_plugins.orchestrator.errors import ModelNotFound
from builtin_plugins.orchestrator.schemas import (
    LARGEST_BODY,
    EmbeddingList,
    EmbeddingsBody,
    ModelList,
    ModelOut,
)
from builtin_plugins.orchestrator.services import embedding, listing
from kernel.sdk import AUTHENTICATED, Context, RouteTable, Unavailable

routes = RouteTable("Models")
aliases = RouteTable("Models")

EMBEDDING = {
    "access": AUTHENTICATED,
    "body": EmbeddingsBody,
    "returns": EmbeddingList,
    "errors": (ModelNotFound, Unavailable),
    "max_body": LARGEST_BODY,
    "long": True,
    "error_format": OPENAI_ERRORS,
    "token_scopes": ("ask",),
}


@routes.get(
    "/v1/ai/models",
    access=AUTHENTICATED,
    returns=ModelList,
    error_format=OPENAI_ERRORS,
    token_scopes=("ask",),
)
async def list_models(ctx: Context) -> ModelList:
    """List the runtime's models, the embedding models, and the caller's pipelines as `pipeline/<name>`."""
    return ModelList(data=await listing.models(ctx))


@routes.get(
    "/v1/ai/models/{model:path}",
    access=AUTHENTICATED,
    returns=ModelOut,
    errors=(ModelNotFound,),
    error_format=OPENAI_ERRORS,
    token_scopes=("ask",),
)
async def get_model(ctx: Context, model: str) -> ModelOut:
    """Show one model."""
    return await listing.model(ctx, model)


@aliases.post("/v1/embeddings", **EMBEDDING)
@routes.post("/v1/ai/embeddings", **EMBEDDING)
async def embed(ctx: Context, body: EmbeddingsBody) -> EmbeddingList:
    """Embed texts. Each vector has length 1; the token counts are estimates."""
    return await embedding.embed(ctx, body)
