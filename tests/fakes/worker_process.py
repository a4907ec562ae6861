"""A worker process with one plugin, whose jobs take a while and write down that they ran.

Run as ``python -m tests.fakes.worker_process``; the environment says where the platform lives.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from kernel.plugins.loading import direct_candidates
from kernel.sdk import Job, Platform, Plugin, hookimpl
from kernel.sdk.jobs import JobMoved
from tests.fakes.plugin_worker import work_until_stopped


class Step(BaseModel):
    """A piece of work: its number, how long it takes, and where it is written down.

    It goes on only when so many are under way `together`. One that turns out to be `heavy` moves to the lane
    of large jobs, and goes on there when one more is under way. When it is interrupted, it cleans up once
    there is no file `hold`.
    """

    number: int
    seconds: float
    folder: str
    together: int = 0
    heavy: bool = False


async def work(_platform: Platform, step: Step) -> None:
    """Idempotent: a second run writes the same file again."""
    Path(step.folder, f"{step.number}.started").write_text(str(os.getpid()))  # noqa: ASYNC240
    while len(list(Path(step.folder).glob("*.started"))) < step.together:  # noqa: ASYNC110, ASYNC240
        await asyncio.sleep(0.02)  # written by another process
    if step.heavy:
        raise JobMoved("large", step.model_copy(update={"heavy": False, "together": step.together + 1}))
    try:
        await asyncio.sleep(step.seconds)
    except asyncio.CancelledError:
        Path(step.folder, f"{step.number}.clearing").write_text(str(os.getpid()))  # noqa: ASYNC240
        while Path(step.folder, "hold").exists():  # noqa: ASYNC110, ASYNC240
            await asyncio.sleep(0.02)  # removed by another process
        Path(step.folder, f"{step.number}.cleared").write_text(str(os.getpid()))  # noqa: ASYNC240
        raise
    Path(step.folder, f"{step.number}.done").write_text(str(os.getpid()))  # noqa: ASYNC240


async def stumble(platform: Platform, step: Step) -> None:
    """Fails the first time."""
    marker = Path(step.folder, f"{step.number}.failed")
    if not marker.exists():  # noqa: ASYNC240
        marker.touch()  # noqa: ASYNC240
        raise RuntimeError("not this time")
    await work(platform, step)


STEP: Job[Step] = Job("steps.step", Step, work)
STUMBLE: Job[Step] = Job("steps.stumble", Step, stumble, first_pause=60)


class StepsPlugin(Plugin):
    """Brings the jobs."""

    name = "steps"

    @hookimpl
    def register_jobs(self) -> list[Job[Any]]:
        return [STEP, STUMBLE]


if __name__ == "__main__":
    asyncio.run(work_until_stopped(direct_candidates([StepsPlugin])))
