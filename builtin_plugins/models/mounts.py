"""The plugin's service as the gateway mounts it (spec 4.5), known while the plugin is off."""

from __future__ import annotations

from kernel.sdk import Mount, Service

SERVICE = Service(
    "model-management",
    title="Platform models",
    port=8005,
    mounts=(Mount("/v1/models", "/models"),),
    long=True,
    critical_phase=2,
)
