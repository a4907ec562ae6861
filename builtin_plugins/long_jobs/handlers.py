"""`/v1/jobs`: following long jobs and cancelling them."""

from __future__ import annotations

from aiohttp import web

from builtin_plugins.long_jobs import following
from builtin_plugins.long_jobs.following import JobFinished, JobNotFound, NotYourJob
from builtin_plugins.long_jobs.schemas import JobOut, JobQuery
from kernel.sdk import AUTHENTICATED, Context, Page, RouteTable, send_events

routes = RouteTable("Jobs")


@routes.get("/v1/jobs", access=AUTHENTICATED, query=JobQuery, returns=Page[JobOut])
async def list_jobs(ctx: Context, query: JobQuery) -> Page[JobOut]:
    """List long jobs, newest first: your own, and those that work on something you can see."""
    return await following.list_page(ctx.caller, query)


@routes.get("/v1/jobs/{job_id}", access=AUTHENTICATED, returns=JobOut, errors=(JobNotFound,))
async def get_job(ctx: Context, job_id: str) -> JobOut:
    """Show one long job: its state, its progress and the estimated time left."""
    return await following.get_job(ctx.caller, job_id)


@routes.get(
    "/v1/jobs/{job_id}/events",
    access=AUTHENTICATED,
    media_type="text/event-stream",
    returns=JobOut,
    errors=(JobNotFound,),
)
async def follow_job(ctx: Context, job_id: str) -> web.StreamResponse:
    """Follow a job as server-sent events named `job`.

    Each event contains the whole job. One is sent at once and after each change, at least every 15 seconds,
    until the job has ended.
    """
    return await send_events(ctx.request, following.follow_job(ctx.caller, job_id), endless=True)


@routes.post(
    "/v1/jobs/{job_id}/cancel",
    access=AUTHENTICATED,
    status=202,
    returns=JobOut,
    errors=(JobNotFound, NotYourJob, JobFinished),
)
async def cancel_job(ctx: Context, job_id: str) -> JobOut:
    """Cancel a job that you started; administrators can cancel any. A running job ends a moment later."""
    return await following.cancel_job(ctx.caller, job_id)
