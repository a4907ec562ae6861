"""What the service adds to its `/health` (wire-facts 2.1)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import func, select

from builtin_plugins.rag.models import KnowledgeBase, Pipeline
from kernel.sdk import Platform


async def health_fields(platform: Platform) -> dict[str, Any]:
    """Counts, and whether a model runtime is configured."""
    reachable = await has_model_runtime(platform)
    async with platform.database.read() as session:
        bases = await session.scalar(select(func.count()).select_from(KnowledgeBase))
        pipelines = await session.scalar(select(func.count()).select_from(Pipeline))
    return {
        "knowledge_bases": bases or 0,
        "rag_pipelines": pipelines or 0,
        "ollama_available": reachable,
        "ollama_initialized": reachable,
    }


async def has_model_runtime(platform: Platform) -> bool:
    """Whether a model runtime is configured and answers."""
    return bool(await platform.hooks.first("check_model_runtime"))
