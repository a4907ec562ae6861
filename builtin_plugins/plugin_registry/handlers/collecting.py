"""Collecting data now, and the analysis of what was collected (spec 4.7, wire-facts 6.2)."""

from __future__ import annotations

import logging
from typing import Any

from sqlalchemy.orm import Session

from builtin_plugins.plugin_registry import api
from kernel.sdk import (
    AUTHENTICATED,
    BadRequest,
    Context,
    Forbidden,
    GatewayTimeout,
    NotFound,
    Platform,
    PlatformError,
    Rate,
    RouteTable,
    Unavailable,
    utc_now,
)

from ..collecting.isolated_call import Question, TookTooLong, ask_alone, question_to
from ..collecting.jobs import request_collection
from ..models import Collection
from ..schemas import CollectionOut, CollectionTriggered
from ..services.records import get_entry
from ..settings import RegistrySettings

routes = RouteTable("Collecting")
log = logging.getLogger("platform.registry")

_COLLECT = "/v1/plugins/{name}/collect"


@routes.post(
    _COLLECT,
    access=AUTHENTICATED,
    status=202,
    returns=CollectionTriggered,
    errors=(NotFound, BadRequest, Unavailable),
    rate=Rate(10, scope="path"),
)
async def collect(ctx: Context, name: str) -> CollectionTriggered:
    """Make a plugin collect its data in the background. A collection that is already running continues."""
    entry = await get_entry(ctx.platform, name)
    if entry.status == "disabled":
        raise BadRequest(f"The plugin '{name}' is not enabled")
    if entry.status != "enabled":
        raise Unavailable(f"The plugin '{name}' is not running: {entry.reason or 'it failed to start'}")
    if question_to(ctx.platform, api.collect_data, name) is None:
        raise BadRequest(f"The plugin '{name}' collects no data")
    job_id, new = await ctx.write(request_collection, name, ctx.principal.id)
    return CollectionTriggered(
        message=f"{name} is collecting its data" if new else f"{name} is already collecting its data",
        plugin=name,
        triggered_by=ctx.principal.username or ctx.principal.subject,
        timestamp=utc_now(),
        note="It runs in the background; follow the job, or read GET /v1/plugins/{name}/collect",
        job_id=job_id,
    )


@routes.get(_COLLECT, access=AUTHENTICATED, returns=CollectionOut, errors=(NotFound,))
async def get_collection(ctx: Context, name: str) -> CollectionOut:
    """Show the latest collection of a plugin: its state, and what the plugin reported."""
    await get_entry(ctx.platform, name)
    collection = await ctx.read(_latest, name)
    if collection is None:
        raise NotFound(f"The plugin '{name}' has not collected anything yet")
    return collection


def _latest(session: Session, name: str) -> CollectionOut | None:
    row = session.get(Collection, name)
    return None if row is None else CollectionOut.model_validate(row, from_attributes=True)


@routes.get(
    "/v1/plugins/{name}/analysis",
    access=AUTHENTICATED,
    returns=dict[str, Any],
    errors=(NotFound, Forbidden, Unavailable, GatewayTimeout),
    rate=Rate(30, scope="path"),
)
async def analysis(ctx: Context, name: str) -> dict[str, Any]:
    """Show a plugin's analysis of its data, as the plugin returns it."""
    entry = await get_entry(ctx.platform, name)
    if entry.status == "disabled":
        raise Forbidden(f"The plugin '{name}' is disabled")
    if entry.status != "enabled":
        raise Unavailable(f"The plugin '{name}' is not running: {entry.reason or 'it failed to start'}")
    question = question_to(ctx.platform, api.analyze_data, name)
    if question is None:
        raise NotFound(f"The plugin '{name}' has no analysis")
    return await _analyzed(ctx.platform, name, question)


async def _analyzed(platform: Platform, name: str, question: Question) -> dict[str, Any]:
    seconds = platform.settings_of(RegistrySettings).analysis_timeout
    try:
        return dict(await ask_alone(question, seconds) or {})
    except TookTooLong:
        raise GatewayTimeout(f"The analysis of '{name}' took more than {seconds:g} s") from None
    except PlatformError:
        raise
    except Exception:  # boundary: another plugin's code
        log.exception("the analysis of %s failed", name)
        raise Unavailable(f"The analysis of '{name}' failed") from None
