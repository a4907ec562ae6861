"""The plugin's service as the gateway mounts it (spec 4.5), known while the plugin is off; its version."""

from __future__ import annotations

from kernel.sdk import Mount, Service

VERSION = "0.1.0"

SERVICE = Service(
    "platform-ops",
    title="Platform operations",
    port=8010,
    mounts=(
        Mount("/v1/bundles", methods=("GET", "POST")),
        Mount("/v1/containers", methods=("GET",)),
        Mount("/v1/backups", methods=("GET", "POST")),
        Mount("/v1/settings", methods=("GET",)),
    ),
)
