"""Starts plugins in a temporary home, to see what they declare and whether they start.

`plugins trial` runs in a separate process, because it may import a stranger's code, which can print, hang or
end the process. It gets the plugins' settings, but an empty home and database.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.plugin_facts import variables_of

if TYPE_CHECKING:
    from kernel.platform import Platform
    from kernel.plugins.loading import PluginRecord

_SECONDS = 180
_LAST_WORDS = 400


@dataclass(frozen=True)
class TrialDeclarations:
    """What a plugin declared when it was started, or why it did not start."""

    name: str
    status: str
    reason: str | None = None
    version: str = ""
    api_version: str = ""
    requires: list[str] = field(default_factory=list)
    routes: list[str] = field(default_factory=list)
    hooks: list[str] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    revisions: list[str] = field(default_factory=list)
    permissions: list[str] = field(default_factory=list)
    actions: list[str] = field(default_factory=list)
    jobs: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    settings: list[str] = field(default_factory=list)
    outgoing_hosts: list[str] = field(default_factory=list)
    tier: str = "community"

    @property
    def starts(self) -> bool:
        """Whether it is in service after the start."""
        return self.status in ("loaded", "disabled")


def try_start(names: Sequence[str], packages: Path | None = None) -> list[TrialDeclarations]:
    """Start the platform with these plugins in a separate process; `packages` is searched first."""
    from kernel.process.serve import this_command

    with tempfile.TemporaryDirectory(prefix="platform-trial-") as folder:
        answer = Path(folder) / "answer.json"
        command = [*this_command("plugins", "trial", *names), "--to", str(answer)]
        try:
            ended = subprocess.run(
                command,
                env=_environment(names, Path(folder), packages),
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return [
                TrialDeclarations(name, "failed", f"the start did not end within {_SECONDS} s")
                for name in names
            ]
        if not answer.exists():
            reason = _last_words(ended)
            return [TrialDeclarations(name, "failed", reason) for name in names]
        return [TrialDeclarations(**item) for item in json.loads(answer.read_text(encoding="utf-8"))]


def _last_words(ended: subprocess.CompletedProcess[str]) -> str:
    output = " ".join((ended.stderr or ended.stdout).split())[-_LAST_WORDS:]
    return output or f"the process ended with {ended.returncode}"


def _environment(names: Sequence[str], folder: Path, packages: Path | None) -> dict[str, str]:
    """The plugins' settings from variables and `config.yaml`, without those that lead to real data.

    Plugins that the operator has disabled don't start, except those on trial.
    """
    from cli import running
    from cli.instance import isolated_environment
    from kernel.settings.checks import split_list

    home = folder / "home"
    home.mkdir(mode=0o700)
    settings = running.kernel_settings()
    config = settings.home / "config.yaml"
    if config.is_file():
        shutil.copyfile(config, home / "config.yaml")
    env = isolated_environment(home) | {"DATABASE_URL": f"sqlite:///{home / 'platform.db'}"}
    # `config.yaml` may name the stores of real data.
    env |= {"PLATFORM_BLOB_STORE": "files", "PLATFORM_CACHE_STORE": "auto", "PLATFORM_VECTOR_STORE": "auto"}
    disabled = [name for name in split_list(settings.plugins_disabled) if name not in names]
    env["PLATFORM_PLUGINS_DISABLED"] = ",".join(disabled)
    if packages is not None:
        env["PYTHONPATH"] = os.pathsep.join([str(packages), *filter(None, [env.get("PYTHONPATH")])])
    return env


async def declare(names: Sequence[str]) -> list[dict[str, Any]]:
    """Start everything and report on these plugins. Runs in the process that `try_start` starts."""
    from cli import running
    from kernel.boot import open_platform

    running.quiet()
    async with open_platform(running.make_loader(), role="api", apply_migrations=True) as platform:
        records = {record.name: record for record in platform.plugins}
        return [asdict(_declared(platform, name, records.get(name))) for name in names]


def _declared(platform: Platform, name: str, record: PluginRecord | None) -> TrialDeclarations:
    from kernel.plugins.offers import OFFERS

    if record is None:
        return TrialDeclarations(name, "failed", f"there is no plugin '{name}' after the start")
    if record.status != "loaded":
        return TrialDeclarations(name, record.status, record.reason, record.version, record.api_version)
    offers = platform.resource(OFFERS)
    actions = [action for (owner, _), action in offers.actions.items() if owner == name]
    return TrialDeclarations(
        name,
        record.status,
        version=record.version,
        api_version=record.api_version,
        requires=list(record.requires),
        routes=_routes(platform, name),
        hooks=platform.hooks.implemented_by(name),
        tables=_tables(record),
        revisions=_revisions(platform, name),
        permissions=_permissions(record),
        actions=[f"{action.name} ({action.access})" for action in actions],
        jobs=sorted(job for job, owner in offers.job_plugins.items() if owner == name),
        events=_events(record),
        settings=variables_of(record),
        outgoing_hosts=list(record.outgoing_hosts),
        tier=_highest([action.tier for action in actions]),
    )


def _routes(platform: Platform, name: str) -> list[str]:
    from kernel.plugins.offers import OFFERS

    offers = platform.resource(OFFERS)
    tables = [table for owner, table in offers.route_tables if owner == name]
    tables += [
        table for owner, service in offers.services.values() if owner == name for table in service.tables
    ]
    return [f"{route.method} {route.path} ({route.access})" for table in tables for route in table.routes]


def _tables(record: PluginRecord) -> list[str]:
    declare_tables = getattr(record.instance, "register_tables", None)
    tables = declare_tables() if declare_tables else None
    return [] if tables is None else sorted(tables.base.metadata.tables)


def _revisions(platform: Platform, name: str) -> list[str]:
    from kernel.db.migrate import known_revisions
    from kernel.db.startup import SCHEMA

    owners = platform.resource(SCHEMA).owners()
    return sorted(revision for owner in owners if owner.name == name for revision in known_revisions(owner))


def _events(record: PluginRecord) -> list[str]:
    declare_events = getattr(record.instance, "register_events", None)
    return [event.event_name for event in declare_events()] if declare_events else []


def _permissions(record: PluginRecord) -> list[str]:
    declare_permissions = getattr(record.instance, "register_permissions", None)
    return [item.key for item in declare_permissions()] if declare_permissions else []


def _highest(tiers: Sequence[str]) -> str:
    order = ("free", "community", "pro", "enterprise")
    return max(("community", *tiers), key=order.index)


def facts(declared: TrialDeclarations) -> Mapping[str, str]:
    """Labels and texts for the commands to show."""
    return {
        "requires": ", ".join(declared.requires),
        "routes": "\n".join(declared.routes) or "none",
        "actions": ", ".join(declared.actions) or "none",
        "hooks": ", ".join(declared.hooks),
        "jobs": ", ".join(declared.jobs) or "none",
        "events": ", ".join(declared.events) or "none",
        "tables": ", ".join(declared.tables) or "none",
        "permissions": ", ".join(declared.permissions) or "none",
        "settings": ", ".join(declared.settings) or "none",
        "outgoing hosts": ", ".join(declared.outgoing_hosts) or "none declared",
        "plugin API": declared.api_version,
    }
