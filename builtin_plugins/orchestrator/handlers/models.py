"""Models by their names, pipelines among them, and embeddings."""

from __future__ import annotations

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
    "openai_errors": True,
    "token_scopes": ("ask",),
}


@routes.get(
    "/v1/ai/models", access=AUTHENTICATED, returns=ModelList, openai_errors=True, token_scopes=("ask",)
)
async def list_models(ctx: Context) -> ModelList:
    """The runtime's models, the embedding models, and each pipeline of the caller as `pipeline/<name>`."""
    return ModelList(data=await listing.models(ctx))


@routes.get(
    "/v1/ai/models/{model:path}",
    access=AUTHENTICATED,
    returns=ModelOut,
    errors=(ModelNotFound,),
    openai_errors=True,
    token_scopes=("ask",),
)
async def get_model(ctx: Context, model: str) -> ModelOut:
    """One model."""
    return await listing.model(ctx, model)


@aliases.post("/v1/embeddings", **EMBEDDING)
@routes.post("/v1/ai/embeddings", **EMBEDDING)
async def embed(ctx: Context, body: EmbeddingsBody) -> EmbeddingList:
    """Vectors of texts, each of length 1. The counts of tokens are estimates."""
    return await embedding.embed(ctx, body)
