"""The plugin's service as the gateway mounts it (spec 4.5), known while the plugin is off."""

from __future__ import annotations

from kernel.sdk import Mount, Service

SERVICE = Service(
    "tts-stt",
    title="Platform speech service",
    port=8006,
    mounts=(
        Mount("/v1/tts", "/tts", methods=("GET", "POST")),
        Mount("/v1/stt", "/stt", methods=("GET", "POST")),
    ),
    long=True,
)
