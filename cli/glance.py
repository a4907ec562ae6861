"""The facts of `platformctl status` and the support bundle, read without changing anything."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

from cli import running

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from kernel.platform import Platform
    from kernel.plugins.diagnostics import Finding

_ANSWER_SECONDS = 5
_FAILURES = 5


async def take(port: int | None = None) -> dict[str, Any]:
    """All facts. Those that can't be read now are missing, and `problems` says why. `port` is the API's, by
    default the setting's.
    """
    from kernel import __version__
    from kernel.errors import StartupError
    from kernel.stores.disk import DiskSpace, folders_written

    settings = running.kernel_settings(None if port is None else {"PLATFORM_PORT": str(port)})
    disk = DiskSpace(folders_written(settings.home, settings.sqlalchemy_url), settings.min_free_disk_mb)
    facts: dict[str, Any] = {
        "version": __version__,
        "home": str(settings.home.absolute()),
        "problems": [],
        "plugins": [],
    }
    facts["address"] = running.own_address(settings)
    facts["api"] = await asyncio.to_thread(_ask, facts["address"])
    facts["disk"] = {
        "free_bytes": disk.free_bytes(),
        "is_short": disk.is_short(),
        "can_be_written": disk.can_be_written(),
    }
    if running.is_unused(settings.home):
        facts["problems"].append("no platform has been started in this home yet")
        return facts
    try:
        async with running.stored_platform(kernel_only=True, apply_migrations=False) as platform:
            facts |= await _of_database(platform)
    except StartupError as error:
        facts["problems"].append(str(error))
    for finding in await _of_plugins():
        facts |= finding.facts
        if finding.status == "ok":
            facts["plugins"].append((finding.check, finding.text, finding.at))
        else:
            facts["problems"].append(finding.text)
    return facts


def _ask(address: str) -> dict[str, Any]:
    """The API's health and services; `answers` is false if nothing listens. Blocks."""
    health = _json_at(f"{address}/health")
    if health is None:
        return {"answers": False}
    services = _json_at(f"{address}/v1/status") or {}
    return {
        "answers": True,
        "status": health.get("status"),
        "version": health.get("version"),
        "unhealthy": {
            name: text
            for name, text in (health.get("checks") or {}).items()
            if str(text).startswith(("unhealthy", "not installed"))
        },
        "services": services.get("services", []),
    }


def _json_at(url: str) -> dict[str, Any] | None:
    try:
        with build_opener(ProxyHandler({})).open(url, timeout=_ANSWER_SECONDS) as answer:
            body = json.loads(answer.read())
    except HTTPError as error:
        with error:
            try:
                body = json.loads(error.read())
            except ValueError:
                return None
    except (OSError, ValueError):
        return None
    return body if isinstance(body, dict) else None


async def _of_database(platform: Platform) -> dict[str, Any]:
    from kernel.db.startup import SCHEMA

    kind = "SQLite" if platform.database.is_sqlite else "PostgreSQL"
    pending = [item.owner for item in platform.resource(SCHEMA).pending]
    if "kernel" in pending:
        return {"database": {"kind": kind, "pending": pending}}
    read = await platform.database.read(_read)
    return {"database": {"kind": kind, "pending": pending}, **read}


def _read(session: Session) -> dict[str, Any]:
    from sqlalchemy import select

    from kernel.db.tables import JobRecord
    from kernel.jobs.figures import read_queue

    figures = read_queue(session)
    failed = JobRecord.status == "failed"
    newest = select(JobRecord).where(failed).order_by(JobRecord.finished_at.desc()).limit(_FAILURES)
    return {
        "workers": figures.workers,
        "queue": [asdict(lane) for lane in figures.lanes],
        "failed_last_day": figures.failed_last_day,
        "failures": [
            {"id": job.id, "kind": job.name, "finished_at": job.finished_at, "error": _short(job.error)}
            for job in session.scalars(newest)
        ],
    }


def _short(text: str | None) -> str:
    from kernel.observe.logs import mask

    return mask(" ".join((text or "").split()))[:300]


async def _of_plugins() -> list[Finding]:
    """What plugins in service report, and which are out of service against their will."""
    from cli.checks import of_plugins
    from kernel.plugins.diagnostics import Finding

    async with running.explained_platform() as platform:
        findings = [finding async for finding in of_plugins(platform, "status")]
        for record in platform.plugins:
            if record.status in ("failed", "refused"):
                text = f"the plugin {record.name} is out of service: {record.reason}"
                findings.append(Finding("plugin", "failed", text))
        return findings
