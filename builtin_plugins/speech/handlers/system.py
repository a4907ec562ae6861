"""Routes about the service itself."""

from __future__ import annotations

from builtin_plugins.speech.schemas import RootOut
from builtin_plugins.speech.services.health import health_fields
from kernel.sdk import PUBLIC, Context, RouteTable

routes = RouteTable("Speech")
VERSION = "0.1.0"


@routes.get("/", access=PUBLIC, returns=RootOut)
async def root(ctx: Context) -> RootOut:
    """Name and state of the service."""
    return RootOut(name="tts-stt", version=VERSION, status="running", **await health_fields(ctx.platform))
