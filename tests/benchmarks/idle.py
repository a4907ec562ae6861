"""B13: what API and worker cost while nothing is to do, and how soon a new job starts.

    python -m tests.benchmarks.idle                    SQLite, 60 seconds
    python -m tests.benchmarks.idle 120 DATABASE_URL   longer, on another database, which must be empty

The start of a job is measured from the commit that enqueues it, in another process than the worker's.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median

import psutil

from kernel.boot import open_platform
from kernel.plugins.loading import direct_candidates
from kernel.settings.loading import SettingsLoader
from kernel.testing import environment
from tests.benchmarks.serving import platform
from tests.benchmarks.table import Row, print_table
from tests.fakes.processes import running_process
from tests.fakes.worker_process import STEP, Step, StepsPlugin

SETTLE = 20.0
JOBS = 40
Env = Mapping[str, str]


async def idle(folder: Path, seconds: float, env: Env) -> list[Row]:
    """The share of a core that the API's process and those below it take, as users start them."""
    async with platform(folder / "home", env=env) as served:
        await asyncio.sleep(SETTLE)
        root = psutil.Process(served.process.pid)
        processes = [root, *root.children(recursive=True)]
        before = _used(processes)
        await asyncio.sleep(seconds)
        share = (_used(processes) - before) / seconds * 100
    what = f"API and worker idle, {len(processes)} processes, over {seconds:.0f} s"
    return [Row("B13", what, f"{share:.2f} % of a core", "< 0.5 %", share < 0.5)]


def _used(processes: Iterable[psutil.Process]) -> float:
    times = [process.cpu_times() for process in processes]
    return sum(one.user + one.system for one in times)


async def starts(folder: Path, env: Env) -> list[Row]:
    """How long after its commit a job starts, one at a time with pauses, in a worker that sleeps."""
    values = environment(folder / "home-starts", {**env, "LOG_LEVEL": "WARNING"})
    steps = folder / "steps"
    steps.mkdir()
    async with AsyncExitStack() as stack:
        opened = open_platform(
            SettingsLoader(values), role="api", candidates=direct_candidates([StepsPlugin])
        )
        running = await stack.enter_async_context(opened)
        command = ("-m", "tests.fakes.worker_process")
        worker = running_process(*command, env={**os.environ, **values}, log=folder / "worker.log")
        await stack.enter_async_context(worker)
        took = []
        for number in range(-2, JOBS):
            step = Step(number=number, seconds=0, folder=str(steps))
            await running.database.write(lambda unit, step=step: unit.enqueue(STEP, step))
            took.append(await _until_started(steps / f"{number}.started", time.time()))
            await asyncio.sleep(0.3)
    waits = sorted(took[2:])
    figure = f"median {median(waits) * 1000:.0f} ms, longest of {JOBS} {waits[-1] * 1000:.0f} ms"
    return [Row("B13", "a new job starts after", figure, "< 100 ms", waits[-1] < 0.1)]


async def _until_started(file: Path, since: float) -> float:
    """By the time that the job's own process wrote into its file's entry."""
    while not file.exists():  # noqa: ASYNC110, ASYNC240 - written by another process
        await asyncio.sleep(0.002)
    return file.stat().st_mtime - since  # noqa: ASYNC240


async def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    env = {"DATABASE_URL": sys.argv[2]} if len(sys.argv) > 2 else {}
    with tempfile.TemporaryDirectory() as name:
        rows = [*await starts(Path(name), env), *await idle(Path(name), seconds, env)]
    print_table(rows)


if __name__ == "__main__":
    asyncio.run(main())
