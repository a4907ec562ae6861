"""The plugin's service as the gateway mounts it (spec 4.5), known while the plugin is off."""

from __future__ import annotations

from kernel.sdk import Mount, Service

SERVICE = Service(
    "rag-pipeline",
    title="Platform RAG pipeline",
    port=8004,
    mounts=(Mount("/v1/rag", ""), "/v1/conversations"),
    long=True,
    critical_phase=2,
)
