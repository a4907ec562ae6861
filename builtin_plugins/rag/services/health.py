"""What the service adds to its `/health` (wire-facts 2.1), and its check of the reranker."""

from __future__ import annotations

import logging
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from builtin_plugins.inference import api as inference
from builtin_plugins.rag.models import KnowledgeBase, Pipeline
from builtin_plugins.rag.questions.rerankers import RERANKER, RerankFailed
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import NotConfigured, Platform, Unhealthy

log = logging.getLogger("platform.rag.reranking")


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
    return bool(await platform.hooks.ask(inference.check_model_runtime, platform=platform))


async def check_reranker(platform: Platform) -> None:
    """Only calls a reranker that has failed or has not been used yet, as each call may cost money."""
    settings = platform.settings_of(RagSettings)
    if settings.rerank_folder is None and settings.rerank_url is None:
        raise NotConfigured()
    reranker = platform.resource(RERANKER)
    if reranker is None:
        raise Unhealthy("the cross-encoder can't be used; the server's log says why")
    if reranker.problem is not None:
        try:
            await reranker.scores("Does it answer?", ["It answers.", "It doesn't."])
        except RerankFailed as error:
            log.warning("%s failed: %s", reranker.name, error)
            raise Unhealthy(f"{reranker.name} failed; the server's log says why") from None
