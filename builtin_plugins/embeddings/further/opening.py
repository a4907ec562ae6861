"""Prepares the models that the settings name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from builtin_plugins.embeddings.catalog import LocalModel
from builtin_plugins.embeddings.further.declarations import keys_of
from builtin_plugins.embeddings.further.endpoint import EndpointModel
from builtin_plugins.embeddings.further.folder import folder_model
from builtin_plugins.embeddings.settings import EmbeddingsSettings
from kernel.sdk import OUTGOING, CallLimits, Platform

_MOST_BYTES = 256 << 20


async def local_models(settings: EmbeddingsSettings) -> Sequence[LocalModel]:
    """The models in folders."""
    named = [(name, one) for name, one in settings.models.items() if one.folder is not None]
    return await asyncio.to_thread(lambda: [folder_model(name, one) for name, one in named])


@asynccontextmanager
async def open_endpoints(platform: Platform) -> AsyncIterator[Mapping[str, EndpointModel]]:
    """The models behind endpoints, by name."""
    settings = platform.settings_of(EmbeddingsSettings)
    keys = keys_of(settings.keys)
    models = dict[str, EndpointModel]()
    async with AsyncExitStack() as stack:
        for name, declared in settings.models.items():
            if declared.url is not None:
                limits = CallLimits(declared.seconds, body_bytes=_MOST_BYTES)
                opened = platform.resource(OUTGOING).client("embeddings", named=[declared.url], limits=limits)
                client = await stack.enter_async_context(opened)
                models[name] = EndpointModel(platform, client, name, declared, keys.get(name))
        yield models
