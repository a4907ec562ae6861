"""The plugin's service as the gateway mounts it (spec 4.5), known while the plugin is off."""

from __future__ import annotations

from kernel.sdk import Mount, Service

SERVICE = Service(
    "plugin-registry",
    title="Plugin registry",
    port=8001,
    mounts=(
        "/v1/plugins",
        Mount("/v1/tools", methods=("GET", "POST")),
        Mount("/v1/licensing", methods=("GET", "POST", "PATCH")),
        Mount("/webhook", methods=("POST",), gated=False, counts=True),
    ),
    critical_phase=1,
)
