"""What worker processes of tests have in common: they run jobs with plugins of the tests until SIGTERM."""

from __future__ import annotations

import os
from collections.abc import Sequence

from kernel.boot import open_platform
from kernel.jobs.worker import Worker, executor_slot
from kernel.plugins.loading import Candidate
from kernel.process.housekeeping import housekeep
from kernel.process.serve import stop_on_signals
from kernel.settings.loading import SettingsLoader


async def work_until_stopped(candidates: Sequence[Candidate], *, tidy: bool = False) -> None:
    """Run jobs until SIGTERM, then end the process; `tidy`: remove what a killed worker left first."""
    stop = stop_on_signals()
    async with (
        open_platform(SettingsLoader.from_home(), role="worker", candidates=candidates) as platform,
        executor_slot(platform) as executor,
    ):
        if tidy:
            await housekeep(platform)
        await Worker(platform, executor).run(stop)
    # As `platformctl worker` does: threads of interrupted jobs wait for the end of the process.
    os._exit(0)
