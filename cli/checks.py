"""What `platformctl doctor` looks at. Nothing here changes anything."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from cli import running
from cli.machine_checks import (
    check_confinement,
    check_dev_ports,
    check_disk,
    check_home,
    check_mail,
    check_packages,
    check_port,
    check_python,
    check_secrets,
)
from cli.plugin_facts import disabled_plugins
from cli.stored_checks import DAMAGED_REMEDY, examine_storage, examine_stored
from kernel.db.migrate import UnknownRevision
from kernel.db.startup import SCHEMA
from kernel.errors import ANY_ERROR, StartupError
from kernel.gateway.services import in_order, installed_services
from kernel.hooks import hookspecs
from kernel.jobs.figures import read_queue
from kernel.platform import Platform
from kernel.plugins.declarations import DECLARATIONS
from kernel.plugins.diagnostics import Finding, Stage
from kernel.plugins.loading import read_report
from kernel.plugins.plugin_settings import PLUGIN_SETTINGS
from kernel.plugins.states import PLUGIN_STATES
from kernel.process.machine_faults import machine_fault
from kernel.stores.blobs import BlobsAway
from kernel.stores.disk import DiskSpace, folders_written


async def examine() -> AsyncIterator[Finding]:
    """All checks, each after those that it builds on."""
    yield check_python()
    for finding in check_packages():
        yield finding
    yield check_confinement()
    try:
        settings = running.kernel_settings()
    except StartupError as error:
        yield Finding("settings", "failed", str(error), "Correct the setting, then check again.")
        return
    homes = list(check_home(settings.home))
    for finding in (*homes, *check_secrets(settings.home)):
        yield finding
    folders = folders_written(settings.home, settings.sqlalchemy_url)
    disk = check_disk(DiskSpace(folders, settings.min_free_disk_mb))
    if settings.home.exists() or homes[0].status == "ok":  # a home that can't be created is on no disk
        yield disk
    port = await asyncio.to_thread(check_port, settings.host, settings.port)
    yield port
    if settings.dev_ports and not port.facts:
        services = in_order(installed_services().values())
        yield check_dev_ports([service.port for service in services if service.port is not None])
    if settings.smtp_host:
        yield await asyncio.to_thread(check_mail, settings.smtp_host, settings.smtp_port)
    with _home_or_scratch(settings.home) as overrides:
        try:
            # On a full disk, no heartbeat can be saved, so nothing shows whether a worker is running.
            heartbeats = bool(port.facts) and disk.status != "failed"
            async for finding in _of_platform(overrides, heartbeats=heartbeats):
                yield finding
        except (StartupError, OSError) as error:  # for example, no secret can be created on a full disk
            reason = getattr(error, "strerror", None) or str(error)
            remedy = "Correct what failed above; the other checks come after this one."
            yield Finding("platform", "failed", f"it can't be opened: {reason}", remedy)


@contextmanager
def _home_or_scratch(home: Path) -> Iterator[dict[str, str]]:
    """Settings that put a temporary home in place of a missing or empty one, which stays as it is."""
    if not running.is_unused(home):
        yield {}
        return
    with tempfile.TemporaryDirectory() as folder:
        yield {"PLATFORM_HOME": folder}


async def _of_platform(overrides: dict[str, str], *, heartbeats: bool) -> AsyncIterator[Finding]:
    """The checks that need plugins, then those that need the database."""
    async with running.explained_platform(overrides) as platform:
        off = await disabled_plugins(platform, quiet=True)  # the database is checked separately
        platform.resource(PLUGIN_STATES).switch_off(off)
        for finding in (*_check_settings(platform), *_check_plugins(platform, off)):
            yield finding
        async for finding in of_plugins(platform, "installation"):
            yield finding
    async for finding in _check_database(overrides, heartbeats=heartbeats):
        yield finding


def _check_settings(platform: Platform) -> Iterator[Finding]:
    disabled = platform.settings.plugins_disabled
    unknown = list(platform.resource(PLUGIN_SETTINGS).unread(disabled, ignore=("PLATFORM_TEST_",)))
    for sentence in unknown:
        yield Finding("settings", "warning", sentence, "Remove it or correct its name.")
    absent = list(platform.resource(PLUGIN_SETTINGS).absent_folders())
    for sentence in absent:
        yield Finding("settings", "warning", sentence, "Create the folder or correct the setting.")
    if not (unknown or absent):
        yield Finding("settings", "ok", "all settings are known and valid")


def _check_plugins(platform: Platform, off: Collection[str]) -> Iterator[Finding]:
    """Problems that loading shows now, and those that only the last server start showed."""
    report = read_report(platform.settings.home)
    at_start = {item["name"]: item for item in report["plugins"]} if report else {}
    sound = 0
    for record in platform.plugins:
        reason = record.reason if record.status in ("failed", "refused") else None
        earlier = at_start.get(record.name, {})
        if reason is None and record.status == "loaded" and earlier.get("status") in ("failed", "refused"):
            reason = f"{earlier['reason']} (when the server started)"
        sound += reason is None and record.status == "loaded" and record.name not in off
        if reason is not None:
            remedy = f"platformctl plugins why {record.name}"
            yield Finding("plugin", "failed", f"{record.name}: {reason}", remedy)
    absent = [record.name for record in platform.plugins if record.status == "not_installed"]
    also = f"; not installed: {', '.join(absent)}" if absent else ""
    yield Finding("plugins", "ok", f"{sound} loaded without problems{also}")


async def of_plugins(platform: Platform, stage: Stage) -> AsyncIterator[Finding]:
    """What the plugins' own checks say at this stage; one that fails is a finding, too."""
    for plugin, diagnostics in platform.resource(DECLARATIONS).of(hookspecs.register_diagnostics):
        for diagnostic in diagnostics:
            if diagnostic.stage != stage:
                continue
            try:
                async for finding in diagnostic.examine(platform):
                    yield finding
            except ANY_ERROR as error:  # boundary: another author's check
                text = f"its check failed with {type(error).__name__}: {error}"
                yield Finding(plugin, "failed", text, "Report it to the plugin's author.")


async def _check_database(overrides: dict[str, str], *, heartbeats: bool) -> AsyncIterator[Finding]:
    try:
        async with running.stored_platform(apply_migrations=False, overrides=overrides) as platform:
            kind = "SQLite" if platform.database.is_sqlite else "PostgreSQL"
            late = [item.owner for item in platform.resource(SCHEMA).pending]
            if await platform.database.is_read_only():
                text = f"{kind} is read-only; nothing can be saved"
                remedy = "If it is a standby, promote it; otherwise, turn off default_transaction_read_only."
                yield Finding("database", "failed", text, remedy)
            elif late and overrides:
                yield Finding("database", "ok", f"{kind}: tables will be created at the first start")
            elif late:
                text = f"{kind}: migrations are pending for {', '.join(late)}"
                yield Finding(
                    "database", "warning", text, "Run 'platformctl db upgrade', or start the platform."
                )
            else:
                yield Finding("database", "ok", f"{kind}, up to date")
            for name, why in platform.resource(SCHEMA).unusable.items():
                yield Finding(
                    "tables", "failed", f"{name}: {why}", "Until then the plugin is out of service."
                )
            async for finding in examine_storage(platform) if late else examine_stored(platform):
                yield finding
            async for finding in of_plugins(platform, "stores" if late else "rows"):
                yield finding
            if heartbeats and "kernel" not in late:
                yield await _check_worker(platform)
    except StartupError as error:
        if isinstance(error.__cause__, BlobsAway):
            yield Finding("files", "failed", str(error), "The platform does not start until that is done.")
            return
        remedy = ""
        if isinstance(error.__cause__, UnknownRevision):
            remedy = "platformctl backup list"
        elif error.__cause__ is not None and machine_fault(error.__cause__) == "damaged":
            remedy = DAMAGED_REMEDY
        elif isinstance(error.__cause__, SQLAlchemyError | OSError):
            remedy = "Start the database or correct DATABASE_URL."
        yield Finding("database", "failed", str(error), remedy)


async def _check_worker(platform: Platform) -> Finding:
    alive = (await platform.database.read(read_queue)).workers
    if alive:
        return Finding("worker", "ok", f"{alive} running")
    return Finding("worker", "warning", "no worker is running", "Start a worker: platformctl worker")
