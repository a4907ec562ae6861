"""Models as OpenAI's API lists them."""

from __future__ import annotations

from builtin_plugins.inference import api as inference
from builtin_plugins.orchestrator.errors import ModelNotFound
from builtin_plugins.orchestrator.schemas import ModelOut
from builtin_plugins.orchestrator.services.pipelines import PREFIX, find_pipeline, pipeline_models
from kernel.sdk import Context


async def models(ctx: Context) -> list[ModelOut]:
    """Models for chats, then those that embed, then the pipelines that the caller may ask."""
    served = [ModelOut(id=name, created=0, owned_by=owner) for name, owner in (await _served(ctx)).items()]
    pipelines = await pipeline_models(ctx)
    return [
        *served,
        *(
            ModelOut(id=one.id, created=int(one.entry.created_at.timestamp()), owned_by="pipeline")
            for one in pipelines
        ),
    ]


async def model(ctx: Context, name: str) -> ModelOut:
    """One of them; a pipeline also by its id. Raises ModelNotFound."""
    if name.startswith(PREFIX):
        pipeline = await find_pipeline(ctx, name)
        created = int(pipeline.entry.created_at.timestamp())
        return ModelOut(id=pipeline.id, created=created, owned_by="pipeline")
    served = {_canonical(one): owner for one, owner in (await _served(ctx)).items()}
    owner = served.get(_canonical(name))
    if owner is None:
        raise ModelNotFound(f"There is no model '{name[:255]}'")
    return ModelOut(id=name, created=0, owned_by=owner)


def _canonical(name: str) -> str:
    """A name without a tag means the ``:latest`` one, as in chats."""
    return name.removesuffix(":latest")


async def _served(ctx: Context) -> dict[str, str]:
    """Names of models, with what they are for."""
    hooks, platform = ctx.platform.hooks, ctx.platform
    chats = await hooks.ask(inference.list_chat_models, platform=platform)
    embedding = await hooks.ask(inference.list_embedding_models, platform=platform)
    owners = {name: "model-runtime" for names in chats for name in names}
    return owners | {name: "embeddings" for names in embedding for name in names if name not in owners}
