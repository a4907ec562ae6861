"""Metrics and audit of tool calls, however they are made: all are counted, writing ones are audited."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from prometheus_client import Counter, Histogram
from sqlalchemy.exc import SQLAlchemyError

from builtin_plugins.tools.api import Tool
from kernel.sdk import (
    Caller,
    Context,
    Platform,
    PlatformError,
    ResourceKey,
    Unit,
    audit,
)

log = logging.getLogger("platform.registry")


@dataclass(frozen=True)
class CallMetrics:
    """Calls by plugin, tool's kind and outcome."""

    calls: Counter
    seconds: Histogram


CALL_METRICS: ResourceKey[CallMetrics] = ResourceKey("tool call metrics")


@asynccontextmanager
async def open_call_metrics(platform: Platform) -> AsyncIterator[CallMetrics]:
    """The metrics of this process."""
    yield CallMetrics(
        platform.metrics.counter("tool_calls_total", "Tool calls.", ("plugin", "kind", "outcome")),
        platform.metrics.histogram("tool_call_duration_seconds", "Duration of tool calls.", ("plugin",)),
    )


async def note(ctx: Context, tool: Tool, seconds: float, error: BaseException | None) -> None:
    """Count a call, and audit it if the tool writes."""
    metrics = ctx.resource(CALL_METRICS)
    outcome = _outcome(error)
    metrics.calls.labels(tool.plugin, tool.kind, outcome).inc()
    metrics.seconds.labels(tool.plugin).observe(seconds)
    if tool.read_only:
        return
    try:
        await ctx.write(_audit, ctx.caller, tool, outcome)
    except (SQLAlchemyError, OSError) as failure:
        log.error("a call of '%s' can't be audited: %s", tool.name, type(failure).__name__)


def _outcome(error: BaseException | None) -> str:
    if error is None:
        return "success"
    return error.code if isinstance(error, PlatformError) else "error"


def _audit(unit: Unit, caller: Caller, tool: Tool, outcome: str) -> None:
    after = {"plugin": tool.plugin, "outcome": outcome}
    audit(unit, "tool.called", "tool", tool.name, after=after, origin=caller.origin)
