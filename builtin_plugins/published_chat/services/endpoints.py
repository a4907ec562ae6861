"""Create, find, change and delete endpoints."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from builtin_plugins.conversations import api as conversations
from builtin_plugins.published_chat.errors import (
    ChatPipelineNotFound,
    ChatSlugTaken,
    EndpointNotFound,
    NotEndpointOwner,
    NotPipelineOwner,
    PublishingNotAllowed,
)
from builtin_plugins.published_chat.models import ChatEndpoint
from builtin_plugins.published_chat.schemas import (
    EndpointCreate,
    EndpointOut,
    EndpointUpdate,
    RagConfig,
    State,
)
from builtin_plugins.published_chat.services.owners import (
    missing_method,
    owner_of,
    pipeline_for,
    state_of,
    states_of,
)
from builtin_plugins.published_chat.settings import PublishedChatSettings
from kernel.sdk import (
    Caller,
    Forbidden,
    PageQuery,
    Platform,
    Scope,
    Unit,
    Unprocessable,
    audit,
    scope_of,
    utc_now,
)
from kernel.sdk.accounts import operator_of

_TARGET = "published_chat"


def find(session: Session, scope: Scope, endpoint_id: str) -> ChatEndpoint:
    """An endpoint that the caller may see. Raises EndpointNotFound."""
    endpoint: ChatEndpoint | None = session.scalar(
        select(ChatEndpoint).where(ChatEndpoint.id == endpoint_id, scope.sees(ChatEndpoint))
    )
    if endpoint is None:
        raise EndpointNotFound()
    return endpoint


def find_own(session: Session, scope: Scope, endpoint_id: str) -> ChatEndpoint:
    """An endpoint that the caller may change. Raises EndpointNotFound, NotEndpointOwner."""
    endpoint = find(session, scope, endpoint_id)
    if not scope.owns(endpoint):
        raise NotEndpointOwner()
    return endpoint


async def create(caller: Caller, request: EndpointCreate) -> EndpointOut:
    """A new endpoint of the caller.

    Raises PipelineNotFound, NotPipelineOwner, PublishingNotAllowed, SlugTaken, and Unprocessable for an
    unknown method.
    """
    if caller.id is None:
        raise Forbidden("Only an account can publish a chat; it answers with the account's rights")
    _check_method(caller.platform, request.rag_config)
    await _check_pipeline(caller, request.pipeline_id)
    settings = caller.platform.settings_of(PublishedChatSettings)
    endpoint = ChatEndpoint(
        id=str(uuid.uuid4()),
        owner_id=caller.id,
        name=request.name,
        slug=request.slug,
        slug_key=request.slug.casefold(),
        pipeline_id=request.pipeline_id,
        allowed_origins=request.allowed_origins,
        rag_config=request.rag_config.model_dump(exclude_unset=True),
        rate_limit_per_minute=request.rate_limit_per_minute,
        daily_questions=request.daily_questions or settings.daily_questions,
        daily_tokens=request.daily_tokens or settings.daily_tokens,
    )
    try:
        await caller.platform.database.write(_add, caller, endpoint)
    except IntegrityError:
        raise ChatSlugTaken() from None
    return await _endpoint_out(caller.platform, endpoint)


def _add(unit: Unit, caller: Caller, endpoint: ChatEndpoint) -> None:
    unit.session.add(endpoint)
    unit.session.flush()
    after = {
        "slug": endpoint.slug,
        "pipeline_id": endpoint.pipeline_id,
        "allowed_origins": endpoint.allowed_origins,
    }
    audit(unit, "published_chat.created", _TARGET, endpoint.id, after=after, origin=caller.origin)


def _check_method(platform: Platform, config: RagConfig) -> None:
    methods = missing_method(platform, config.method)
    if methods is not None:
        place = ("body", "rag_config", "method")
        raise Unprocessable.field(place, f"must be one of {', '.join(methods)}", config.method)


async def _check_pipeline(owner: Caller, pipeline_id: str) -> None:
    pipeline = await pipeline_for(owner, pipeline_id)
    if pipeline is None:
        raise ChatPipelineNotFound()
    if not pipeline.own and not owner.principal.is_admin:
        raise NotPipelineOwner()
    if pipeline.unpublishable:
        raise PublishingNotAllowed()


async def list_page(caller: Caller, query: PageQuery) -> tuple[list[EndpointOut], int]:
    """The endpoints that the caller may see, oldest first, and how many there are."""
    scope = await scope_of(caller.platform, caller.principal)
    rows, total = await caller.platform.database.read(_page, scope, query)
    states = await states_of(caller.platform, rows)
    return [_render(row, states[row.id]) for row in rows], total


def _page(session: Session, scope: Scope, query: PageQuery) -> tuple[Sequence[ChatEndpoint], int]:
    visible = scope.sees(ChatEndpoint)
    total = session.scalar(select(func.count()).select_from(ChatEndpoint).where(visible))
    ordered = select(ChatEndpoint).where(visible).order_by(ChatEndpoint.created_at, ChatEndpoint.id)
    return session.scalars(ordered.limit(query.limit).offset(query.offset)).all(), int(total or 0)


async def get(caller: Caller, endpoint_id: str) -> EndpointOut:
    """One endpoint. Raises EndpointNotFound."""
    scope = await scope_of(caller.platform, caller.principal)
    return await _endpoint_out(caller.platform, await caller.platform.database.read(find, scope, endpoint_id))


async def update(caller: Caller, endpoint_id: str, change: EndpointUpdate) -> EndpointOut:
    """Change an endpoint. A new pipeline must be its owner's, whoever changes it.

    Raises EndpointNotFound, NotEndpointOwner, PipelineNotFound, NotPipelineOwner, PublishingNotAllowed,
    Unprocessable.
    """
    platform = caller.platform
    scope = await scope_of(platform, caller.principal)
    endpoint = await platform.database.read(find_own, scope, endpoint_id)
    if change.rag_config is not None:
        _check_method(platform, change.rag_config)
    if change.pipeline_id is not None and change.pipeline_id != endpoint.pipeline_id:
        owner = await owner_of(platform, endpoint)
        if owner is None:
            raise ChatPipelineNotFound()
        await _check_pipeline(owner, change.pipeline_id)
    return await _endpoint_out(
        platform, await platform.database.write(_update, caller, scope, endpoint_id, change)
    )


def _update(
    unit: Unit, caller: Caller, scope: Scope, endpoint_id: str, change: EndpointUpdate
) -> ChatEndpoint:
    endpoint = find_own(unit.session, scope, endpoint_id)
    sent = change.model_dump(exclude_unset=True, exclude_none=True)
    if "allowed_origins" in change.model_fields_set:
        sent["allowed_origins"] = change.allowed_origins
    if change.rag_config is not None:
        sent["rag_config"] = change.rag_config.model_dump(exclude_unset=True)
    before = {name: getattr(endpoint, name) for name in sent}
    for name, value in sent.items():
        setattr(endpoint, name, value)
    endpoint.updated_at = utc_now()
    audit(
        unit,
        "published_chat.updated",
        _TARGET,
        endpoint.id,
        before=before,
        after=sent,
        origin=caller.origin,
    )
    unit.session.flush()
    return endpoint


async def remove(caller: Caller, endpoint_id: str) -> None:
    """Delete an endpoint with its visitors' sessions and conversations.

    Raises EndpointNotFound, NotEndpointOwner.
    """
    scope = await scope_of(caller.platform, caller.principal)
    await caller.platform.database.write(_remove, caller, scope, endpoint_id)
    await caller.platform.database.scrub()


def _remove(unit: Unit, caller: Caller, scope: Scope, endpoint_id: str) -> None:
    _delete(unit, caller, find_own(unit.session, scope, endpoint_id))


async def remove_of_account(platform: Platform, account_id: int) -> None:
    """Delete the endpoints of a deleted account, with their visitors' sessions and conversations."""
    while await platform.database.write(_remove_next, operator_of(platform), account_id):
        pass


def _remove_next(unit: Unit, caller: Caller, account_id: int) -> bool:
    query = select(ChatEndpoint).where(ChatEndpoint.owner_id == account_id).order_by(ChatEndpoint.id).limit(1)
    endpoint: ChatEndpoint | None = unit.session.scalar(query.with_for_update())
    if endpoint is not None:
        _delete(unit, caller, endpoint)
    return endpoint is not None


def _delete(unit: Unit, caller: Caller, endpoint: ChatEndpoint) -> None:
    hooks = caller.platform.hooks
    hooks.ask_now(conversations.forget_turns, platform=caller.platform, unit=unit, holder=endpoint.holder)
    audit(
        unit,
        "published_chat.deleted",
        _TARGET,
        endpoint.id,
        before={"slug": endpoint.slug},
        origin=caller.origin,
    )
    unit.session.delete(endpoint)


async def _endpoint_out(platform: Platform, endpoint: ChatEndpoint) -> EndpointOut:
    return _render(endpoint, (await state_of(platform, endpoint))[0])


def _render(row: ChatEndpoint, state: State) -> EndpointOut:
    return EndpointOut(
        id=row.id,
        name=row.name,
        slug=row.slug,
        pipeline_id=row.pipeline_id,
        allowed_origins=row.allowed_origins,
        rag_config=row.rag_config,
        rate_limit_per_minute=row.rate_limit_per_minute,
        daily_questions=row.daily_questions,
        daily_tokens=row.daily_tokens,
        enabled=row.enabled,
        state=state,
        owner_user_id=row.owner_id,
        widget=f"/v1/chat/{row.slug}/widget.js",
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
