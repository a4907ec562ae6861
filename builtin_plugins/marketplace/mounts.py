"""The plugin's service as the gateway mounts it (spec 4.5), known while the plugin is off."""

from __future__ import annotations

from kernel.sdk import Service

SERVICE = Service(
    "marketplace",
    title="Marketplace",
    port=8002,
    mounts=("/v1/marketplace", "/v1/graph"),
)
