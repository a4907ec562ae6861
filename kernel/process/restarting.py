"""Restarts an installation's processes, such as after its data was replaced."""

from __future__ import annotations

import asyncio
import logging
import os
import sys

from kernel.db.engine import Unit
from kernel.platform import Platform

log = logging.getLogger("platform.serve")

RESTART = "kernel.restart"
"""Topic of the notice that tells every process to stop gracefully and start again."""


def request_restart(unit: Unit) -> None:
    """Once the unit is committed, every serving process finishes its requests and starts again."""
    unit.notify(RESTART, "")


def restart_requested(platform: Platform, stop: asyncio.Event) -> asyncio.Event:
    """An event that a requested restart sets, along with `stop`."""
    restart = asyncio.Event()

    def hear(_key: str) -> None:
        log.info("starting again")
        restart.set()
        stop.set()

    platform.notices.listen(RESTART, hear)
    return restart


def start_again() -> None:
    """Replace this process with a new one with the same command line; execve(2) ends every thread."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
