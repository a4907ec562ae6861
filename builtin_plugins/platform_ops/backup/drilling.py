"""A restore drill requested over HTTP: a worker runs `platformctl backup drill`."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import sys
from collections.abc import Iterable
from contextlib import aclosing
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from builtin_plugins.platform_ops.backup import journal
from builtin_plugins.platform_ops.backup.errors import BackupFailed
from kernel.sdk import ChildFailed, ChildLimits, Children, JobFailed, LongJob, Platform, Progress
from kernel.sdk.operations import PLUGIN_SETTINGS

log = logging.getLogger("platform_ops.backup")

_WITHOUT_END: Final = 10**9
# No short limit, as it copies everything; cancelling the job ends it.
_LIMITS: Final = ChildLimits(
    memory_mb=1_000_000, cpu_seconds=_WITHOUT_END, wall_seconds=_WITHOUT_END, file_bytes=1 << 50
)
_FOLDER: Final = "drills"


class Drill(BaseModel):
    """The journal's entry and the archive."""

    job_id: str
    archive: str


async def run_drill(platform: Platform, payload: Drill, progress: Progress) -> str | None:
    """Rehearse the restore of an archive. Interrupted, it starts again with an empty instance."""
    if await platform.database.write(journal.start, payload.job_id) is None:
        return None
    progress.report(message="Restoring into a temporary instance")
    try:
        output = await _rehearse(platform, payload)
    except BackupFailed as error:
        raise JobFailed(str(error)) from error
    await platform.database.write(journal.end, payload.job_id, output=output)
    return f"/v1/backups/jobs/{payload.job_id}"


async def _rehearse(platform: Platform, payload: Drill) -> str:
    """Run the command; returns what it found to be the same. Raises BackupFailed."""
    home = platform.settings.home.absolute()
    folder = home / _FOLDER / payload.job_id
    await asyncio.to_thread(_make_empty, folder)
    own = {"PLATFORM_HOME": str(home), "TMPDIR": str(folder)}
    command = [sys.executable, "-P", "-m", "cli", "backup", "drill", payload.archive, "--json"]
    try:
        async with aclosing(Children()) as children:
            answer = await children.run(
                command,
                limits=_LIMITS,
                environment={**platform.resource(PLUGIN_SETTINGS).loader.variables, **own},
            )
    except ChildFailed as error:
        raise BackupFailed(_reason(error)) from error
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, True)
    return "\n".join(json.loads(answer)["same"])


def _reason(error: ChildFailed) -> str:
    """The error that the command reported; the rest of its output is for the log."""
    _, marker, reason = error.errors.rpartition("error: ")
    if error.reason != "failed" or not marker:
        log.error("a drill ended (%s): %s", error, error.errors.strip())
        return f"the temporary instance ended: {error.reason}; the worker's log says more"
    return " ".join(reason.split())


def _make_empty(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)


def instances(home: Path) -> list[Path]:
    """The folders of temporary instances, each named after its job."""
    folder = home / _FOLDER
    return list(folder.iterdir()) if folder.is_dir() else []


def remove_instances(folders: Iterable[Path]) -> None:
    """Remove what drills of killed workers left behind."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


async def _failed(platform: Platform, payload: Drill, reason: str) -> None:
    await platform.database.write(journal.end, payload.job_id, error=reason)


async def _cancelled(platform: Platform, payload: Drill) -> None:
    await _failed(platform, payload, "cancelled")


DRILL = LongJob(
    "platform_ops.drill",
    Drill,
    run_drill,
    title="Rehearse a restore",
    lane="large",
    on_give_up=_failed,
    on_cancel=_cancelled,
)
