"""Permission keys of the RAG plugin."""

from __future__ import annotations

from kernel.sdk import Permission

KB_CREATE = Permission("rag.kb.create", "Create knowledge bases.", granted_to="user")
PIPELINE_CREATE = Permission(
    "rag.pipeline.create", "Create pipelines over knowledge bases.", granted_to="user"
)

PERMISSIONS = (KB_CREATE, PIPELINE_CREATE)
