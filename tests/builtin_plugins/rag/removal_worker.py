"""A worker process that writes down each deleted document that it hears of.

Run as ``python -m tests.builtin_plugins.rag.removal_worker``; the environment says where the platform lives,
`DELETIONS` where to write. With `DELETIONS_DIE`, the process kills itself at the first one.
"""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from kernel.boot import open_platform
from kernel.housekeeping import housekeep
from kernel.jobs.worker import Worker, executor_slot
from kernel.sdk import Event, Plugin, hookimpl
from kernel.serve import stop_on_signals
from kernel.settings import SettingsLoader
from kernel.testing import candidates_of

DELETED = "rag.document_deleted"


class DeletionsPlugin(Plugin):
    """A file for each deleted document; with `dies`, none after the first."""

    name = "deletions"

    def __init__(self, folder: str = "", *, dies: bool = False) -> None:
        self.folder = folder
        self.dies = dies
        self.heard: list[str] = []

    @hookimpl
    def on_event(self, event: Event) -> None:
        if event.event_name == DELETED:
            self.heard.append(event.model_dump()["document_id"])
            if self.folder:
                Path(self.folder, self.heard[-1]).touch()
            if self.dies:
                os.kill(os.getpid(), signal.SIGKILL)


async def main() -> None:
    """Work until SIGTERM."""
    stop = stop_on_signals()
    plugin = DeletionsPlugin(os.environ["DELETIONS"], dies="DELETIONS_DIE" in os.environ)
    candidates = candidates_of("rag", plugin)
    async with (
        open_platform(SettingsLoader.from_home(), role="worker", candidates=candidates) as platform,
        executor_slot(platform) as executor,
    ):
        await housekeep(platform)
        await Worker(platform, executor).run(stop)
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main())
