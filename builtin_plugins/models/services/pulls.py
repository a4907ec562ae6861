"""Begin, follow and cancel pulls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from builtin_plugins.long_jobs.api import JobOut, cancel_job, follow_job, get_job
from builtin_plugins.models.errors import NoRuntime, PullEnded, PullFailed, PullNotFound
from builtin_plugins.models.models import Pull
from builtin_plugins.models.names import canonical
from builtin_plugins.models.runtimes.errors import RuntimeUnreachable
from builtin_plugins.models.runtimes.protocol import ManagedRuntime, PullProgress
from builtin_plugins.models.schemas import ModelChanged, PullOut, PullRequest
from builtin_plugins.models.services import pull_rows
from builtin_plugins.models.services.model_calls import MODELS, Configured, Models
from builtin_plugins.models.services.pulling import PULL, PullPayload, check_room
from builtin_plugins.models.settings import ModelsSettings
from kernel.sdk import Caller, Context, NotFound, Page, PageQuery, Unit, audit, set_within

_BREATH: Final = 15.0


async def begin(ctx: Context, body: PullRequest) -> PullOut | ModelChanged:
    """Begin a pull, or report that the model is there. Raises NoRuntime, RuntimeUnreachable, StoreFull."""
    models, settings = ctx.resource(MODELS), ctx.settings_of(ModelsSettings)
    configured = _target(models, body.runtime)
    there = {canonical(info.id) for info in await configured.look()}
    if configured.failed:
        raise RuntimeUnreachable()
    if canonical(body.model_id) in there:
        return _changed(
            body.model_id, "already_exists", f"Model '{body.model_id}' is already there", configured
        )
    await check_room(configured, settings, PullProgress("", 0, 0))
    row = await ctx.write(_begin, ctx.caller, body.model_id, configured.name, settings.max_concurrent_pulls)
    return await _pull_out(ctx.caller, row)


async def finish(ctx: Context, pull: PullOut) -> ModelChanged:
    """Wait for the end of a pull. Raises PullFailed if it doesn't succeed."""
    last = pull
    async with aclosing(follow(ctx.caller, pull.id)) as events:
        async for _, pull in events:
            last = pull
    if last.status != "done":
        raise PullFailed(last.error or f"The pull of '{last.model}' was cancelled")
    return ModelChanged(
        message=f"Model '{last.model}' pulled",
        model=last.model,
        status="pulled",
        details={"runtime": last.runtime, "size_bytes": last.completed_bytes, "pull_id": last.id},
    )


async def get(caller: Caller, pull_id: str) -> PullOut:
    """One pull. Raises PullNotFound."""
    row = await caller.platform.database.read(pull_rows.find, pull_id)
    if row is None:
        raise PullNotFound()
    return await _pull_out(caller, row)


async def list_page(caller: Caller, query: PageQuery) -> Page[PullOut]:
    """All pulls, newest first."""
    rows, total = await caller.platform.database.read(pull_rows.page, query.limit, query.offset)
    items = [await _pull_out(caller, row) for row in rows]
    return Page[PullOut](items=items, total=total, limit=query.limit, offset=query.offset)


async def follow(caller: Caller, pull_id: str) -> AsyncGenerator[tuple[str, PullOut], None]:
    """The pull as a `pull` event now and after each change, until it has ended."""
    changed = asyncio.Event()

    def listen(key: str) -> None:
        if key == pull_id:
            changed.set()

    with caller.platform.notices.listening(pull_rows.CHANGED, listen):
        while True:
            changed.clear()
            pull = await get(caller, pull_id)
            yield "pull", pull
            if pull.status not in pull_rows.UNDER_WAY:
                return
            if pull.status == "running":
                async with aclosing(follow_job(caller, pull_id)) as jobs:
                    async for _, job in jobs:
                        yield "pull", _with(pull, job)
            await set_within(changed, _BREATH)


async def cancel(caller: Caller, pull_id: str) -> PullOut:
    """Cancel a pull; what was fetched stays with the runtime. Raises PullNotFound, PullEnded."""
    status = await caller.platform.database.write(pull_rows.cancel_waiting, pull_id)
    if status is None:
        raise PullNotFound()
    if status not in pull_rows.UNDER_WAY:
        raise PullEnded()
    if status == "running":
        await cancel_job(caller, pull_id)
    return await get(caller, pull_id)


def _begin(unit: Unit, caller: Caller, model: str, runtime: str, limit: int) -> Pull:
    row = pull_rows.request(unit, model, runtime, caller.id)
    pull_rows.start_next(unit, limit, PULL, PullPayload)
    audit(unit, "model.pull_requested", "model", model, after={"runtime": runtime}, origin=caller.origin)
    return row


def _target(models: Models, name: str | None) -> Configured:
    for configured in models.servers:
        if isinstance(configured.runtime, ManagedRuntime) and name in (None, configured.name):
            return configured
    raise NoRuntime()


async def _pull_out(caller: Caller, row: Pull) -> PullOut:
    pull = PullOut(
        id=row.id,
        model=row.model,
        runtime=row.runtime,
        status=row.status,
        stage="Waiting for another pull" if row.status == "queued" else "",
        completed_bytes=0,
        total_bytes=None,
        eta_seconds=None,
        error=row.error,
        created_at=row.created_at,
        ended_at=row.ended_at,
    )
    try:
        return _with(pull, await get_job(caller, row.id))
    except NotFound:  # waiting, cancelled while waiting, or ended long ago
        return pull


def _with(pull: PullOut, job: JobOut) -> PullOut:
    return pull.model_copy(
        update={
            "stage": job.message,
            "completed_bytes": job.progress.done,
            "total_bytes": job.progress.total,
            "eta_seconds": job.eta_seconds,
        }
    )


def _changed(model: str, status: str, message: str, configured: Configured) -> ModelChanged:
    return ModelChanged.model_validate(
        {"message": message, "model": model, "status": status, "details": {"runtime": configured.name}}
    )


def started(pull: PullOut) -> ModelChanged:
    """The answer for clients that don't wait."""
    return ModelChanged(
        message=f"Pulling '{pull.model}'; follow it at /v1/models/pulls/{pull.id}",
        model=pull.model,
        status="pulling",
        details={"runtime": pull.runtime, "pull_id": pull.id},
    )
