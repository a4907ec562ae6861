"""What the service adds to its `/health` (wire-facts 2.1)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from builtin_plugins.rag.models import KnowledgeBase, Pipeline
from kernel.sdk import Platform, contracts


async def health_fields(platform: Platform) -> dict[str, Any]:
    """Counts, and whether a model runtime is configured."""
    reachable = await has_model_runtime(platform)
    return {
        **await platform.database.read(_counts),
        "ollama_available": reachable,
        "ollama_initialized": reachable,
    }


def _counts(session: Session) -> dict[str, int]:
    return {
        "knowledge_bases": session.scalar(select(func.count()).select_from(KnowledgeBase)) or 0,
        "rag_pipelines": session.scalar(select(func.count()).select_from(Pipeline)) or 0,
    }


async def has_model_runtime(platform: Platform) -> bool:
    """Whether a model runtime is configured and answers."""
    return bool(await platform.hooks.ask(contracts.check_model_runtime, platform=platform))
