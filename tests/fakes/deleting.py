"""Deleting accounts in tests of what belongs to them."""

from __future__ import annotations

from typing import Any

from builtin_plugins.long_jobs.api import JobOut, get_job
from kernel.sdk import Caller, Principal
from kernel.testing import Actor, Reply, Running, somebody


async def deletion(running: Running, leaving: Actor | int, **query: Any) -> Reply:
    """The answer to a Platform Admin who deletes the account."""
    admin = await somebody(running, role="admin", platform_admin=True)
    account_id = leaving if isinstance(leaving, int) else leaving.user["id"]
    options = {"params": {name: str(value) for name, value in query.items()}}
    return await admin.delete(f"/v1/auth/users/{account_id}", **options)


async def delete_account(running: Running, leaving: Actor, **query: Any) -> JobOut:
    """Delete the account and run the jobs; returns the finished one."""
    answer = await deletion(running, leaving, **query)
    assert answer.status == 202, answer.body
    await running.run_jobs()
    job = await job_of(running, answer)
    assert job.status == "done", job
    return job


async def job_of(running: Running, answer: Reply) -> JobOut:
    """The job that a deletion has begun, as a service sees it."""
    caller = Caller(running.platform, Principal("service", "service:test"))
    return await get_job(caller, answer.json()["job_id"])
