"""The models that a person may choose for an answer."""

from __future__ import annotations

import asyncio
from typing import Final

from builtin_plugins.models.runtimes.errors import ModelRuntimeError
from builtin_plugins.models.schemas_connections import ModelChoice, ModelChoicesOut
from builtin_plugins.models.services.model_calls import MODELS, Models, embeds
from kernel.sdk import Context

_LISTED_FOR: Final = 30.0


async def list_choices(ctx: Context) -> ModelChoicesOut:
    """Models that write texts and that the caller may call, in the servers' order; none of a silent one."""
    models = ctx.resource(MODELS)
    await asyncio.gather(*(configured.look(_LISTED_FOR) for configured in models.all))
    chats = [
        (configured.name, info.id)
        for configured in models.all
        if not configured.failed
        for info in configured.listed
        if not embeds(info.id)
    ]
    permitted = await models.rules.permitted(name for _, name in chats)
    items = [
        ModelChoice(model=f"{server}/{name}", name=name, runtime=server)
        for server, name in chats
        if name in permitted
    ]
    default = await _default(models)
    return ModelChoicesOut(
        items=items, default=default if default in {item.model for item in items} else None
    )


async def _default(models: Models) -> str | None:
    if not models.may_have(None):
        return None
    try:
        configured, name = await models.choose(models.default_model)
    except ModelRuntimeError:
        return None
    model = configured.find(name)
    return None if model is None else f"{configured.name}/{model}"
