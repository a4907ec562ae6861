"""The plugin's service as the gateway mounts it (spec 4.5), known while the plugin is off."""

from __future__ import annotations

from builtin_plugins.inference.api import OPENAI_ERRORS
from kernel.sdk import Mount, Service

SERVICE = Service(
    "orchestrator",
    title="Orchestrator",
    port=8003,
    mounts=(Mount("/v1/ai", methods=("GET", "POST", "DELETE"), gated=False, error_format=OPENAI_ERRORS),),
    long=True,
)
