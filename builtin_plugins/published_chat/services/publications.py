"""The chats that publish a knowledge base, for its owner, who may end them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, false, func, literal, select
from sqlalchemy.orm import Session

from builtin_plugins.published_chat.errors import EndpointNotFound, NotBaseOwner, PublishedBaseNotFound
from builtin_plugins.published_chat.models import ChatEndpoint
from builtin_plugins.published_chat.schemas import PublishingChat, State
from builtin_plugins.published_chat.services.owners import owner_of, states_of
from builtin_plugins.rag import api as rag
from kernel.sdk import Caller, PageQuery, Platform, Scope, Unit, audit, scope_of, utc_now

_ALL = Scope(None, everything=True)


async def list_page(caller: Caller, kb_id: str, query: PageQuery) -> tuple[list[PublishingChat], int]:
    """The chats that answer from a knowledge base of the caller, oldest first, and how many there are.

    Raises PublishedBaseNotFound, NotBaseOwner.
    """
    platform = caller.platform
    scope = await scope_of(platform, caller.principal)
    rows, total = await platform.database.read(_page, platform, scope, kb_id, query)
    states = await states_of(platform, rows)
    return [_render(row, states[row.id], await owner_of(platform, row)) for row in rows], total


def _render(row: ChatEndpoint, state: State, owner: Caller | None) -> PublishingChat:
    return PublishingChat(
        id=row.id,
        name=row.name,
        slug=row.slug,
        owner=owner.principal.username if owner else None,
        allowed_origins=row.allowed_origins,
        state=state,
        created_at=row.created_at,
    )


def _page(
    session: Session, platform: Platform, scope: Scope, kb_id: str, query: PageQuery
) -> tuple[Sequence[ChatEndpoint], int]:
    _require_owner(session, platform, scope, kb_id)
    condition = _over(session, platform, kb_id)
    total = session.scalar(select(func.count()).select_from(ChatEndpoint).where(condition))
    ordered = select(ChatEndpoint).where(condition).order_by(ChatEndpoint.created_at, ChatEndpoint.id)
    return session.scalars(ordered.limit(query.limit).offset(query.offset)).all(), int(total or 0)


async def end(caller: Caller, kb_id: str, endpoint_id: str) -> None:
    """Turn off a chat that answers from a knowledge base of the caller.

    Raises PublishedBaseNotFound, NotBaseOwner, EndpointNotFound.
    """
    scope = await scope_of(caller.platform, caller.principal)
    await caller.platform.database.write(_end, caller, scope, kb_id, endpoint_id)


def _end(unit: Unit, caller: Caller, scope: Scope, kb_id: str, endpoint_id: str) -> None:
    _require_owner(unit.session, caller.platform, scope, kb_id)
    where = _over(unit.session, caller.platform, kb_id) & (ChatEndpoint.id == endpoint_id)
    endpoint: ChatEndpoint | None = unit.session.scalar(select(ChatEndpoint).where(where).with_for_update())
    if endpoint is None:
        raise EndpointNotFound()
    endpoint.enabled, endpoint.updated_at = False, utc_now()
    after = {"knowledge_base_id": kb_id, "enabled": False}
    audit(unit, "published_chat.ended", "published_chat", endpoint.id, after=after, origin=caller.origin)


def _over(session: Session, platform: Platform, kb_id: str) -> ColumnElement[bool]:
    """The condition for endpoints over a knowledge base, whoever owns them."""
    pipelines = platform.hooks.ask_now(
        rag.list_pipelines_over, platform=platform, session=session, scope=_ALL, knowledge_base_id=kb_id
    )
    return ChatEndpoint.pipeline_id.in_(pipelines) if pipelines else false()


def _require_owner(session: Session, platform: Platform, scope: Scope, kb_id: str) -> None:
    bases = platform.hooks.ask_now(rag.select_knowledge_bases, platform=platform, scope=scope)
    if bases is None or session.scalar(select(literal(kb_id).in_(bases))) is not True:
        raise PublishedBaseNotFound()
    if not platform.hooks.ask_now(
        rag.owns_knowledge_base, platform=platform, session=session, scope=scope, knowledge_base_id=kb_id
    ):
        raise NotBaseOwner()
