"""What the service reports about its runtimes (wire-facts 2.1)."""

from __future__ import annotations

from typing import Any

from builtin_plugins.models.services.model_calls import MODELS
from kernel.sdk import NotConfigured, Platform, Unhealthy


async def check_servers(platform: Platform) -> None:
    """Check that every configured server answers."""
    models = platform.resource(MODELS)
    if not models.servers:
        raise NotConfigured()
    silent = [server.name for server in models.servers if not await server.runtime.healthy()]
    if not silent:
        return
    if len(models.servers) == 1:
        raise Unhealthy("the model runtime does not answer; check its address, and that it is running")
    raise Unhealthy(f"these model runtimes do not answer: {', '.join(silent)}; check their addresses")


async def health_fields(platform: Platform) -> dict[str, Any]:
    """How many models there were in the last lists."""
    models = platform.resource(MODELS)
    for configured in models.all:
        await configured.look(_LOOK_SECONDS)
    return {"models_registered": models.registered()}


_LOOK_SECONDS = 10.0
