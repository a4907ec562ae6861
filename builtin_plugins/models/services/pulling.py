"""The job that pulls a model: progress, lost connections, room on the disk."""

from __future__ import annotations

import asyncio
import logging
import shutil
from contextlib import aclosing
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from builtin_plugins.models.connections.live import LIVE_SERVERS
from builtin_plugins.models.errors import StoreFull
from builtin_plugins.models.runtimes.errors import ModelRuntimeError, RuntimeLacksModel
from builtin_plugins.models.runtimes.protocol import ManagedRuntime, PullProgress
from builtin_plugins.models.services import pull_rows
from builtin_plugins.models.services.model_calls import MODELS, Configured
from builtin_plugins.models.settings import ModelsSettings
from kernel.sdk import JobFailed, LongJob, Platform, Progress, Unit

log = logging.getLogger("platform.models")

_LONGEST_PAUSE: Final = 60.0
_GB: Final = 10**9


class PullPayload(BaseModel):
    """Which model to pull to which runtime; `pull_id` is also the job's id."""

    pull_id: str
    model: str
    runtime: str


async def pull(platform: Platform, payload: PullPayload, progress: Progress) -> str:
    """Pull until the model is there, continuing after lost connections: the runtime keeps what it has."""
    configured = await _runtime(platform, payload.runtime)
    await _pull(platform, configured, payload.model, progress)
    await configured.look()
    await _end(platform, payload.pull_id, "done")
    return payload.model


async def _pull(platform: Platform, configured: Configured, model: str, progress: Progress) -> None:
    settings = platform.settings_of(ModelsSettings)
    lost, reached, pause = 0, -1, settings.pull_pause_seconds
    while True:
        try:
            await _attempt(configured, model, progress, settings)
            return
        except RuntimeLacksModel:
            raise JobFailed(f"The model runtime's registry has no model '{model}'") from None
        except StoreFull as error:
            raise JobFailed(str(error.detail)) from None
        except ModelRuntimeError as error:
            if progress.done > reached:
                lost, reached, pause = 0, progress.done, settings.pull_pause_seconds
            lost += 1
            if lost >= settings.pull_attempts:
                raise JobFailed(f"Given up after {lost} attempts without progress: {error.detail}") from None
            progress.report(message="The connection was lost; continuing in a moment")
            log.info("pulling '%s' is interrupted: %s", model, error.detail)
        await asyncio.sleep(pause)
        pause = min(max(pause, 0.1) * 2, _LONGEST_PAUSE)


async def _attempt(configured: Configured, model: str, progress: Progress, settings: ModelsSettings) -> None:
    runtime = configured.runtime
    assert isinstance(runtime, ManagedRuntime)
    checked = -1
    async with aclosing(runtime.pull(model)) as parts:
        async for part in parts:
            if part.total > checked:
                checked = part.total
                await check_room(configured, settings, part)
            progress.report(part.completed, total=part.total or None, unit="bytes", message=part.stage)


async def check_room(configured: Configured, settings: ModelsSettings, part: PullProgress) -> None:
    """Raise StoreFull if the rest doesn't fit. A remote server looks after its own disk."""
    folder = await asyncio.to_thread(_store, settings) if configured.is_here else None
    if folder is None:
        return
    free = (await asyncio.to_thread(shutil.disk_usage, folder)).free
    needed = part.total - part.completed + int(settings.spare_disk_gb * _GB)
    if free < needed:
        raise StoreFull(
            f"Not enough disk space for the model: {needed / _GB:.2f} GB are needed and {free / _GB:.2f} GB "
            "are free where the model runtime keeps its models"
        )


def _store(settings: ModelsSettings) -> Path | None:
    folder = settings.store_folder or Path("~/.ollama/models").expanduser()
    return folder if folder.is_dir() else None


async def _runtime(platform: Platform, name: str) -> Configured:
    if (configured := _find(platform, name)) is None:  # connected a moment ago, maybe
        await platform.resource(LIVE_SERVERS).refresh()
        configured = _find(platform, name)
    if configured is None:
        raise JobFailed(f"The model runtime '{name}' is no longer configured")
    return configured


def _find(platform: Platform, name: str) -> Configured | None:
    for configured in platform.resource(MODELS).servers:
        if configured.name == name and isinstance(configured.runtime, ManagedRuntime):
            return configured
    return None


async def _give_up(platform: Platform, payload: PullPayload, reason: str) -> None:
    await _end(platform, payload.pull_id, "failed", reason)


async def _cancelled(platform: Platform, payload: PullPayload) -> None:
    await _end(platform, payload.pull_id, "cancelled")


async def _end(platform: Platform, pull_id: str, status: str, error: str | None = None) -> None:
    limit = platform.settings_of(ModelsSettings).max_concurrent_pulls
    await platform.database.write(_end_and_go_on, pull_id, status, error, limit)


def _end_and_go_on(unit: Unit, pull_id: str, status: str, error: str | None, limit: int) -> None:
    pull_rows.end(unit, pull_id, status, error)
    pull_rows.start_next(unit, limit, PULL, PullPayload)


PULL = LongJob(
    "models.pull",
    PullPayload,
    pull,
    title="Pull a model",
    on_give_up=_give_up,
    on_cancel=_cancelled,
)
