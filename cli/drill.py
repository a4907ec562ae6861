"""A rehearsed restore: into a temporary instance, compared with what the backup says."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.failures import CommandFailed
from cli.instance import isolated_environment

if TYPE_CHECKING:
    from builtin_plugins.platform_ops.backup.manifest import Manifest
    from kernel.platform import Platform

_BACKUP = "PLATFORM_BACKUP_"


async def rehearse(name: str | None) -> list[str]:
    """Restore an archive into a temporary home; answers what was the same. Raises CommandFailed."""
    home = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="platform-drill-"))
    try:
        return await _rehearse(name, home)
    finally:
        await asyncio.to_thread(shutil.rmtree, home, True)


async def _rehearse(name: str | None, home: Path) -> list[str]:
    from builtin_plugins.platform_ops.backup.operator import restore
    from builtin_plugins.platform_ops.backup.service import archives_of
    from cli import running

    async with running.explained_platform() as platform:
        archives = await asyncio.to_thread(archives_of, platform)
        newest: str = await asyncio.to_thread(archives.newest)
        environment = _environment(platform, home)
    chosen = name or newest
    async with _opened(environment, "tool") as copy:
        await restore(copy, chosen)
        manifest = await asyncio.to_thread((await asyncio.to_thread(archives_of, copy)).manifest, chosen)
    async with _opened(environment, "worker") as copy:
        files = await _compare_files(copy, manifest)
        answers = await _compare_answers(copy, manifest)
    tables = [table for owner in manifest.owners for table in owner.tables]
    rows = sum(table.rows for table in tables)
    return [
        f"{chosen} was restored into a temporary instance",
        f"{len(tables)} tables with {rows} rows are the same, row by row",
        files,
        answers,
    ]


def _environment(platform: Platform, home: Path) -> dict[str, str]:
    """A home of its own, and the place and the key of the real platform's backups."""
    from builtin_plugins.platform_ops.settings import OpsSettings

    settings, found = platform.settings_of(OpsSettings), isolated_environment(home)
    given: dict[str, Any] = {
        "TO": settings.backup_to or platform.settings.home / "backups",
        "PASSPHRASE": settings.backup_passphrase and settings.backup_passphrase.get_secret_value(),
        "KEY_FILE": settings.backup_key_file and settings.backup_key_file.absolute(),
    }
    return {**found, **{f"{_BACKUP}{key}": str(value) for key, value in given.items() if value}}


def _opened(environment: dict[str, str], role: Any) -> Any:
    from kernel.boot import open_platform
    from kernel.settings import SettingsLoader

    return open_platform(SettingsLoader.from_home(environment), role=role)


async def _compare_files(copy: Platform, manifest: Manifest) -> str:
    for content in manifest.blobs:
        path = await copy.blobs.local(content.sha256)
        if await asyncio.to_thread(_digest, path) != content.sha256:
            raise CommandFailed(f"the restored file {content.sha256[:12]}… differs")
    return f"{len(manifest.blobs)} uploaded files are the same, byte by byte"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


async def _compare_answers(copy: Platform, manifest: Manifest) -> str:
    from builtin_plugins.platform_ops.backup.service import answers_of

    if not manifest.answers:
        return "no questions were recorded in this backup"
    given = {item.question: item.answer for item in await answers_of(copy)}
    for item in manifest.answers:
        if given.get(item.question) != item.answer:
            raise CommandFailed(f"the restored copy answers another way: {item.question[:200]}")
    return f"{len(manifest.answers)} recorded questions have the same answers, byte by byte"
