"""The plugin's service as the gateway mounts it (spec 4.5), known while the plugin is off."""

from __future__ import annotations

from kernel.sdk import Mount, Service

SERVICE = Service(
    "graph-rag",
    title="Platform Graph-RAG",
    port=8008,
    mounts=(Mount("/v1/graph-rag", "/graph-rag"),),
    long=True,
)
