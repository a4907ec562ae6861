"""List, describe, delete and try the models of all runtimes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import Final, Literal

from builtin_plugins.inference import api as inference
from builtin_plugins.models.errors import ModelElsewhere, UnknownModel
from builtin_plugins.models.names import canonical
from builtin_plugins.models.runtimes.errors import RuntimeLacksModel, RuntimeUnreachable
from builtin_plugins.models.runtimes.protocol import ManagedRuntime, ModelInfo
from builtin_plugins.models.schemas import (
    ModelChanged,
    ModelDetailsOut,
    ModelOut,
    ModelPage,
    OpenAIModel,
    TestOut,
)
from builtin_plugins.models.services.model_calls import MODELS, Configured, Models
from kernel.sdk import Caller, Context, PageQuery, Unavailable, Unit, audit

_FRESH: Final = 2.0
_TEST_TOKENS: Final = 200
_UNITS: Final = ("B", "KB", "MB", "GB", "TB")


async def list_models(ctx: Context, query: PageQuery) -> ModelPage:
    """All models in the runtimes' order, each once. Raises Unavailable when no runtime answers."""
    models = ctx.resource(MODELS)
    await asyncio.gather(*(configured.look(_FRESH) for configured in models.servers))
    if models.servers and all(server.failed for server in models.servers) and not models.local.has_files:
        raise Unavailable("Can't list models: no model runtime answers; check that it is running")
    models_by_name: dict[str, ModelOut] = {}
    for configured in models.all:
        for info in await configured.look(_FRESH):
            models_by_name.setdefault(canonical(info.id), _model_out(models, configured, info))
    page = list(models_by_name.values())[query.offset : query.offset + query.limit]
    return ModelPage(
        items=page,
        total=len(models_by_name),
        limit=query.limit,
        offset=query.offset,
        data=[OpenAIModel(id=item.id, owned_by=item.runtime) for item in page],
    )


async def describe(ctx: Context, model_id: str) -> ModelDetailsOut:
    """One model. Raises UnknownModel, Unavailable."""
    configured, info = await find(ctx.resource(MODELS), model_id)
    try:
        details = await configured.runtime.describe(info.id)
    except RuntimeLacksModel:
        raise UnknownModel() from None
    capabilities = list(details.capabilities)
    return ModelDetailsOut(id=info.id, details=dict(details.details), capabilities=capabilities)


async def delete(caller: Caller, models: Models, model_id: str) -> ModelChanged:
    """Remove a model from its runtime. Raises UnknownModel, ModelElsewhere."""
    configured, info = await find(models, model_id)
    runtime = configured.runtime
    if not isinstance(runtime, ManagedRuntime) and configured.runtime is not models.local:
        raise ModelElsewhere()
    try:
        await (models.local.delete(info.id) if runtime is models.local else _delete(runtime, info.id))
    except RuntimeLacksModel:
        raise ModelElsewhere() if runtime is models.local else UnknownModel() from None
    await configured.look()
    await caller.platform.database.write(_note, caller, info.id, configured.name)
    details = {"runtime": configured.name}
    return ModelChanged(
        message=f"Model '{info.id}' deleted", model=info.id, status="deleted", details=details
    )


async def try_out(ctx: Context, model_id: str, prompt: str) -> TestOut:
    """A model's answer to a prompt. Raises UnknownModel, Unavailable, and errors of the model's limits."""
    models = ctx.resource(MODELS)
    configured, info = await find(models, model_id)
    message = inference.ChatMessage("user", prompt)
    name = f"{configured.name}/{info.id}"
    pieces: list[str] = []
    async with aclosing(models.generate([message], name, 0.0, _TEST_TOKENS, {})) as stream:
        async for item in stream:
            if isinstance(item, str):
                pieces.append(item)
    return TestOut(model=info.id, prompt=prompt, response="".join(pieces))


async def find(models: Models, model_id: str) -> tuple[Configured, ModelInfo]:
    """The runtime that has a model, and the model. Raises UnknownModel; Unavailable if one that may have it
    does not answer.
    """
    prefix, slash, rest = model_id.partition("/")
    names = {configured.name for configured in models.all}
    for configured in models.all:
        names_of_model = {canonical(model_id)}
        if slash and prefix in names:
            names_of_model |= {canonical(rest)} if prefix == configured.name else set()
        info = _among(await configured.look(_FRESH), names_of_model) or _among(
            await configured.look(), names_of_model
        )
        if info is not None and not configured.failed:
            return configured, info
    if any(configured.failed for configured in models.servers):
        raise RuntimeUnreachable()
    raise UnknownModel(f"No model '{model_id}'")


def _among(listed: Sequence[ModelInfo], names: set[str]) -> ModelInfo | None:
    return next((info for info in listed if canonical(info.id) in names), None)


async def _delete(runtime: object, model: str) -> None:
    if isinstance(runtime, ManagedRuntime):
        await runtime.delete(model)


def _model_out(models: Models, configured: Configured, info: ModelInfo) -> ModelOut:
    return ModelOut(
        id=info.id,
        name=info.id,
        type="local" if configured.is_here else "remote",
        provider=configured.kind,
        runtime=configured.name,
        size=size(info.size_bytes),
        status=_status(models, configured, info),
    )


def _status(models: Models, configured: Configured, info: ModelInfo) -> Literal["ready", "loading", "error"]:
    if configured.kind == "local":
        return models.local.status(info.id)
    return "error" if configured.failed else "ready"


def size(count: int | None) -> str:
    """Such as ``1.23 GB``; the units are powers of 1,000."""
    if count is None:
        return "Unknown"
    amount, unit = float(count), 0
    while amount >= 1000 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1000, unit + 1
    return f"{amount:.2f} {_UNITS[unit]}"


def _note(unit: Unit, caller: Caller, model: str, runtime: str) -> None:
    audit(unit, "model.deleted", "model", model, origin=caller.origin, before={"runtime": runtime})
