"""A worker process with a plugin that dies while it removes what belonged to a deleted account.

Run as ``python -m tests.fakes.removal_process``; the environment says where the platform lives.
"""

from __future__ import annotations

import asyncio
import os

from kernel.boot import open_platform
from kernel.jobs.worker import Worker, executor_slot
from kernel.plugins import given
from kernel.serve import stop_on_signals
from kernel.settings import SettingsLoader
from tests.fakes.shelf_of_things import DyingPlugin


async def main() -> None:
    """Work until SIGTERM."""
    stop = stop_on_signals()
    loader = SettingsLoader.from_home()
    async with (
        open_platform(loader, role="worker", candidates=given([DyingPlugin])) as platform,
        executor_slot(platform) as executor,
    ):
        await Worker(platform, executor).run(stop)
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main())
