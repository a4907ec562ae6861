"""A worker process that writes down each deleted document that it hears of.

Run as ``python -m tests.builtin_plugins.rag.removal_worker``; the environment says where the platform lives,
`DELETIONS` where to write. With `DELETIONS_DIE`, the process kills itself at the first one.
"""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from kernel.sdk import Event, Plugin, hookimpl
from kernel.testing import candidates_of
from tests.fakes.plugin_worker import work_until_stopped

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
    plugin = DeletionsPlugin(os.environ["DELETIONS"], dies="DELETIONS_DIE" in os.environ)
    await work_until_stopped(candidates_of("rag", plugin), tidy=True)


if __name__ == "__main__":
    asyncio.run(main())
