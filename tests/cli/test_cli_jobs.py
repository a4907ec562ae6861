"""Background work from the command line."""

from __future__ import annotations

import asyncio
import json

from pydantic import BaseModel

from kernel.db.tables import JobRecord
from kernel.sdk import LongJob, Platform, Progress, Unit
from kernel.testing import Start
from tests.cli.conftest import Cli


class Nothing(BaseModel):
    """Nothing needs to be told."""


async def _never(platform: Platform, payload: Nothing, progress: Progress) -> str | None:
    return None


WAITING: LongJob[Nothing] = LongJob("test.waiting", Nothing, _never, title="Wait")


async def test_follow_and_cancel(cli: Cli, start_platform: Start) -> None:
    """A job that waits is listed, shown and cancelled; a second time is refused, an unknown one missing."""
    running = await start_platform()
    job_id = await running.platform.database.write(lambda unit: unit.enqueue(WAITING, Nothing()))
    listed = await asyncio.to_thread(cli, "jobs", "list", "--json")
    assert [(job["id"], job["status"]) for job in json.loads(listed.stdout)] == [(job_id, "queued")]
    assert job_id in (await asyncio.to_thread(cli, "jobs", "list", "--status", "queued")).stdout
    shown = await asyncio.to_thread(cli, "jobs", "show", job_id)
    assert "test.waiting" in shown.stdout
    assert (await asyncio.to_thread(cli, "jobs", "cancel", job_id)).exit_code == 0
    again = await asyncio.to_thread(cli, "jobs", "cancel", job_id)
    assert again.exit_code != 0
    assert "cancelled" in again.stderr
    assert (await asyncio.to_thread(cli, "jobs", "show", "unknown")).exit_code == 3


def test_a_wrong_status_is_named(cli: Cli) -> None:
    result = cli("jobs", "list", "--status", "lost")
    assert result.exit_code == 2
    assert "queued" in result.stderr


def test_schedules(cli: Cli) -> None:
    """What runs by the clock, before any worker has run."""
    found = json.loads(cli("jobs", "schedules", "--json").stdout)
    housekeeping = next(item for item in found if item["job"] == "kernel.housekeeping")
    assert (housekeeping["plugin"], housekeeping["schedule"], housekeeping["next"]) == (
        "kernel",
        "@hourly",
        None,
    )
    assert "kernel.housekeeping" in cli("jobs", "schedules").stdout


async def test_what_a_finished_job_last_did(cli: Cli, start_platform: Start) -> None:
    """A finished job shows its title, not what it was last working on."""
    running = await start_platform()
    job_id = await running.platform.database.write(lambda unit: unit.enqueue(WAITING, Nothing()))

    def end(unit: Unit) -> None:
        job = unit.session.get_one(JobRecord, job_id)
        job.status, job.message = "done", "Counting the ships"

    await running.platform.database.write(end)
    listed = (await asyncio.to_thread(cli, "jobs", "list")).stdout
    assert "Wait" in listed and "Counting" not in listed
