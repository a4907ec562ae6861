"""From settings to runtimes: opened with the platform, closed with it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from builtin_plugins.models.addresses import NamedRuntime
from builtin_plugins.models.connections.live import LiveServers
from builtin_plugins.models.local.files import named_files
from builtin_plugins.models.local.process import Serving
from builtin_plugins.models.local.runtime import LocalLimits, LocalRuntime
from builtin_plugins.models.runtimes.ollama import OllamaRuntime
from builtin_plugins.models.runtimes.openai import OpenAIRuntime
from builtin_plugins.models.runtimes.protocol import ModelRuntime, RuntimeLimits
from builtin_plugins.models.services.model_calls import MODELS, Configured, Models
from builtin_plugins.models.services.rules import Rules
from builtin_plugins.models.services.usage import ModelUsage
from builtin_plugins.models.settings import ModelsSettings
from kernel.sdk import OUTGOING, TRACING, OutgoingClient, Platform


@asynccontextmanager
async def open_models(platform: Platform) -> AsyncIterator[Models]:
    """Every configured server, and the files on this machine."""
    settings = platform.settings_of(ModelsSettings)
    named = settings.named_runtimes()
    limits = _limits(settings)
    durations = platform.metrics.histogram(
        "llm_generation_duration_seconds", "Duration of one generation.", ("model",)
    )
    addresses = [runtime.url for runtime in named]
    async with (
        platform.resource(OUTGOING).client("models", named=addresses) as client,
        _local(platform, settings, limits).running() as local,
        ModelUsage(platform).running() as usage,
    ):
        servers = [_server(client, runtime, settings, limits) for runtime in named]
        models = Models(
            [*servers], local, settings, Rules(platform), usage, durations, platform.resource(TRACING)
        )
        registered = platform.metrics.gauge(
            "models_registered_total", "Models of all runtimes, as they were listed last."
        )
        registered.set_function(models.registered)
        yield models


@asynccontextmanager
async def open_connections(platform: Platform) -> AsyncIterator[LiveServers]:
    """The servers that administrators connected, beside those of the settings."""
    settings = platform.settings_of(ModelsSettings)
    make = partial(_server, settings=settings, limits=_limits(settings))
    live = LiveServers(platform, platform.resource(MODELS), make)
    async with live.running():
        yield live


def _limits(settings: ModelsSettings) -> RuntimeLimits:
    return RuntimeLimits(
        connect_s=settings.connect_seconds, idle_s=settings.silence_seconds, total_s=settings.total_seconds
    )


def _server(
    client: OutgoingClient, named: NamedRuntime, settings: ModelsSettings, limits: RuntimeLimits
) -> Configured:
    runtime: ModelRuntime
    if named.kind == "ollama":
        tokens = settings.context_tokens
        runtime = OllamaRuntime(client, named.url, limits=limits, context_tokens=tokens, api_key=named.key)
    else:
        runtime = OpenAIRuntime(client, named.url, api_key=named.key, limits=limits)
    return Configured(named.name, named.kind, runtime, named.is_here)


def _local(platform: Platform, settings: ModelsSettings, limits: RuntimeLimits) -> LocalRuntime:
    threads = settings.local_threads or max(1, (os.cpu_count() or 2) - 1)
    serving = Serving(
        threads,
        settings.local_context_tokens,
        settings.local_parallel,
        settings.local_load_seconds,
    )
    return LocalRuntime(
        platform,
        platform.settings.home / "models",
        named_files(settings.local_files),
        serving,
        LocalLimits(settings.local_loaded, settings.local_idle_seconds, settings.local_spare_mb),
        limits,
    )
