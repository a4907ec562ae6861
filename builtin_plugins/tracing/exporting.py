"""Sends spans in batches, in a separate thread, never at the expense of the work that they record."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from builtin_plugins.tracing.settings import TracingSettings
from kernel.sdk import PLUGIN_STATES, TRACING, Platform, ResourceKey, StartupError, in_abandonable_thread

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

log = logging.getLogger("platform.tracing")

_LAST_WORDS: Final = 3.0  # seconds at the end for sending the rest
_NOT_INSTALLED: Final = (
    "OTEL_EXPORTER_OTLP_ENDPOINT is set, but OpenTelemetry's packages are not installed; install"
    " platform-kernel[otel], or unset the variable"
)

EXPORTING: ResourceKey[None] = ResourceKey("tracing.exporting")


@asynccontextmanager
async def open_exporting(platform: Platform) -> AsyncIterator[None]:
    """Record and send traces within the block, if the operator named a collector. Raises StartupError."""
    settings = platform.settings_of(TracingSettings)
    if settings.address is None:
        yield
        return
    _check(settings)
    provider = await asyncio.to_thread(_load, platform, settings, settings.address)
    from builtin_plugins.tracing.recording import Recorder

    tracing = platform.resource(TRACING)
    recorder, ended = Recorder(provider, tracing), False

    def switch(_failed: object = None) -> None:
        """Record while the plugin is enabled."""
        tracing.tracer = recorder if platform.is_on("tracing") and not ended else None

    platform.resource(PLUGIN_STATES).listen(switch)
    switch()
    try:
        yield
    finally:
        ended = True
        switch()
        await _finish(provider)


def _check(settings: TracingSettings) -> None:
    parts = urlsplit(settings.address or "")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        name = f"OTEL_EXPORTER_OTLP_{'TRACES_' if settings.traces_endpoint else ''}ENDPOINT"
        raise StartupError(f"{name}: expected an address such as http://host:4318")
    if settings.exporter.strip().lower() != "otlp":
        raise StartupError(
            f"OTEL_TRACES_EXPORTER: '{settings.exporter}' can't be used; expected otlp or none"
        )
    if settings.protocol.strip().lower() != "http/protobuf":
        raise StartupError(
            f"OTEL_EXPORTER_OTLP_PROTOCOL: '{settings.protocol}' can't be used; expected http/protobuf, which"
            " collectors take at port 4318"
        )


async def _finish(provider: TracerProvider) -> None:
    try:
        async with asyncio.timeout(_LAST_WORDS):
            await in_abandonable_thread(provider.shutdown)
    except TimeoutError:
        log.warning("the last traces were not sent: the collector does not answer")


def _load(platform: Platform, settings: TracingSettings, address: str) -> TracerProvider:
    try:
        from builtin_plugins.tracing.provider import make_provider
    except ImportError:
        raise StartupError(_NOT_INSTALLED) from None
    return make_provider(address, settings.service_name, platform.role)
