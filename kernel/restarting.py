"""Restarting an installation's processes while the machine stays up, as after its data was replaced."""

from __future__ import annotations

import asyncio
import logging
import os
import sys

from kernel.db.engine import Unit
from kernel.platform import Platform

log = logging.getLogger("platform.serve")

RESTART = "kernel.restart"
"""Topic of the notice that every process shall end as if told to stop, and start again."""


def request_restart(unit: Unit) -> None:
    """Once the unit is committed, every process in service finishes its requests and starts again."""
    unit.notify(RESTART, "")


def restart_requested(platform: Platform, stop: asyncio.Event) -> asyncio.Event:
    """An event that a requested restart sets, together with `stop`."""
    asked = asyncio.Event()

    def hear(_key: str) -> None:
        log.info("starting again")
        asked.set()
        stop.set()

    platform.notices.listen(RESTART, hear)
    return asked


def start_again() -> None:
    """Replace this process by a fresh one with the same command line; execve(2) ends every thread."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
