"""Traces: what a request or a job did, across processes and servers."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_plugins.tracing.exporting import EXPORTING, open_exporting
from builtin_plugins.tracing.settings import TracingSettings
from kernel.sdk import Plugin, Resource, hookimpl


class TracingPlugin(Plugin):
    """Records the kernel's spans with OpenTelemetry's library; off unless a collector is named."""

    name = "tracing"
    version = "0.1.0"
    description = "Traces of requests, jobs and model calls, sent to an OpenTelemetry collector"
    author = "Platform"

    @hookimpl
    def register_settings(self) -> type[TracingSettings]:
        return TracingSettings

    @hookimpl
    def register_resources(self) -> Sequence[Resource[None]]:
        return [Resource(EXPORTING, open_exporting)]
