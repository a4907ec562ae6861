"""Collecting data: a job for each plugin, one at a time, on request and every hour."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from builtin_plugins.plugin_registry import api
from kernel.sdk import (
    Job,
    JobFailed,
    LongJob,
    NoPayload,
    Platform,
    PlatformError,
    Progress,
    Unit,
    is_machine_fault,
    utc_now,
)

from ..models import Collection
from ..settings import RegistrySettings
from .isolated_call import TookTooLong, ask_alone, question_to

log = logging.getLogger("platform.registry")

LOCK = "plugin_registry.collect"


class CollectPayload(BaseModel):
    """The plugin that collects."""

    plugin: str


def request_collection(unit: Unit, plugin: str, account_id: int | None) -> tuple[str, bool]:
    """The job that collects for a plugin, and whether it is new, as a plugin has one at a time."""
    unit.lock(LOCK)
    row: Collection | None = unit.session.get(Collection, plugin)
    if row is not None and row.status == "collecting":
        return row.job_id, False
    job_id = unit.enqueue(COLLECT, CollectPayload(plugin=plugin), owner_id=account_id)
    if row is None:
        row = Collection(plugin=plugin)
        unit.session.add(row)
    row.job_id, row.status, row.started_at, row.finished_at = job_id, "collecting", utc_now(), None
    return job_id, True


async def collect(platform: Platform, payload: CollectPayload, progress: Progress) -> None:
    """Let the plugin collect, and store its result."""
    progress.report(0, message=f"{payload.plugin} is collecting")
    result = await _collected(platform, payload.plugin)
    await platform.database.write(_end, payload.plugin, "done", result, None)


async def _collected(platform: Platform, plugin: str) -> Any:
    question = question_to(platform, api.collect_data, plugin)
    if question is None:
        raise JobFailed("The plugin is not running, or it collects nothing")
    seconds = platform.settings_of(RegistrySettings).collect_timeout
    try:
        return _as_json(await ask_alone(question, seconds))
    except TookTooLong:
        raise JobFailed(f"The plugin did not finish within {seconds:g} s") from None
    except PlatformError as error:
        raise JobFailed(str(error.detail)) from None
    except Exception as error:  # boundary: another plugin's code
        if is_machine_fault(error):
            raise
        log.exception("collecting of %s failed", plugin)
        raise JobFailed("The plugin failed; the log says more") from None


def _as_json(result: Mapping[str, Any] | None) -> Any:
    return to_jsonable_python(result, inf_nan_mode="null", serialize_unknown=True)


def _end(unit: Unit, plugin: str, status: str, result: Any, error: str | None) -> None:
    row = unit.session.get(Collection, plugin)
    if row is not None:
        row.status, row.error, row.finished_at = status, error, utc_now()
        row.result = result if status == "done" else row.result


async def _give_up(platform: Platform, payload: CollectPayload, reason: str) -> None:
    await platform.database.write(_end, payload.plugin, "failed", None, reason)


async def _cancelled(platform: Platform, payload: CollectPayload) -> None:
    await platform.database.write(_end, payload.plugin, "failed", None, "It was cancelled")


async def collect_all(platform: Platform, _payload: NoPayload) -> None:
    """Start collecting for every plugin that does; running collections continue."""
    for implementation in platform.hooks.implementations(api.collect_data):
        await platform.database.write(request_collection, implementation.plugin, None)


COLLECT = LongJob(
    "plugin_registry.collect",
    CollectPayload,
    collect,
    title="Collect a plugin's data",
    on_give_up=_give_up,
    on_cancel=_cancelled,
)
COLLECT_ALL = Job("plugin_registry.collect_all", NoPayload, collect_all, lane="quick", schedule="@hourly")
