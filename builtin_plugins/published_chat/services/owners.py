"""A chat answers with its owner's current rights, from documents that everybody may read who sees their
knowledge bases.
"""

from __future__ import annotations

from collections.abc import Sequence

from builtin_plugins.published_chat.models import ChatEndpoint
from builtin_plugins.published_chat.schemas import State
from builtin_plugins.rag import api as rag
from kernel.sdk import ACCOUNT_STATES, Caller, Platform


async def owner_of(platform: Platform, endpoint: ChatEndpoint) -> Caller | None:
    """The endpoint's owner, who asks for visitors; None once the account is gone or deactivated."""
    if endpoint.owner_id is None:
        return None
    account = await platform.resource(ACCOUNT_STATES).get(endpoint.owner_id)
    if account is None or not account.is_active:
        return None
    return rag.for_visitors(Caller(platform, account.principal))


async def pipeline_for(owner: Caller, pipeline_id: str) -> rag.PipelineEntry | None:
    """The pipeline, if the owner may ask it."""
    pipelines = await owner.platform.hooks.ask(rag.find_pipelines, caller=owner, pipeline_ids=[pipeline_id])
    return (pipelines or {}).get(pipeline_id)


async def state_of(platform: Platform, endpoint: ChatEndpoint) -> tuple[State, Caller | None]:
    """Whether the endpoint answers now, or why not; and its owner, if it does."""
    if not endpoint.enabled:
        return "disabled", None
    owner = await owner_of(platform, endpoint)
    if owner is None:
        return "owner_inactive", None
    pipeline = await pipeline_for(owner, endpoint.pipeline_id)
    if pipeline is None:
        return "pipeline_gone", None
    if not pipeline.knowledge_bases:
        return "no_knowledge_base", None
    if pipeline.unpublishable:
        return "publishing_not_allowed", None
    if missing_method(platform, endpoint.rag_config.get("method")) is not None:
        return "method_gone", None
    return "open", owner


def missing_method(platform: Platform, method: str | None) -> Sequence[str] | None:
    """The available methods, if this isn't one of them: its plugin may be disabled."""
    methods = platform.hooks.ask_now(rag.list_methods, platform=platform)
    return None if method is None or methods is None or method.lower() in methods else methods


async def states_of(platform: Platform, endpoints: Sequence[ChatEndpoint]) -> dict[str, State]:
    """The states of several endpoints, by id."""
    return {one.id: (await state_of(platform, one))[0] for one in endpoints}
