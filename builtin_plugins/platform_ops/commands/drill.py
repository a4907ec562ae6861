"""Rehearses a restore into a temporary instance and compares it with the backup's records."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.failures import CommandFailed
from cli.instance import isolated_environment, variables

if TYPE_CHECKING:
    from builtin_plugins.platform_ops.backup.manifest import ArchiveManifest
    from kernel.sdk import Platform

_BACKUP = "PLATFORM_BACKUP_"
_SECTIONS = ("embeddings", "models", "rag")
_ANSWERING = (
    *("PLATFORM_PLUGINS_DISABLED", "PLATFORM_EMBEDDINGS_", "PLATFORM_MODELS_", "PLATFORM_RAG_"),
    *("OLLAMA_", "OPENAI_", "RERANK_"),
)


async def rehearse(name: str | None, into: str | None = None) -> tuple[str, list[str]]:
    """Restore an archive into a temporary home. Returns its name and what matched. Raises CommandFailed.

    `into` is the address of an empty database to use instead of a temporary SQLite one.
    """
    home = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="platform-drill-"))
    try:
        return await _rehearse(name, home, into)
    finally:
        await asyncio.to_thread(shutil.rmtree, home, True)


async def _rehearse(name: str | None, home: Path, into: str | None) -> tuple[str, list[str]]:
    from builtin_plugins.platform_ops.backup.operator import restore
    from builtin_plugins.platform_ops.backup.service import archives_of
    from cli import running
    from cli.plugin_facts import require

    async with running.explained_platform() as platform:
        require(platform, "platform_ops")
        archives = await asyncio.to_thread(archives_of, platform)
        newest: str = await asyncio.to_thread(archives.newest)
        environment = await asyncio.to_thread(_environment, platform, home)
    if into is not None:
        environment["DATABASE_URL"] = into
        await running.refuse_used_database(environment)
    chosen = name or newest
    async with running.platform_of(environment, "tool") as copy:
        await restore(copy, chosen)
        manifest = await asyncio.to_thread((await asyncio.to_thread(archives_of, copy)).manifest, chosen)
    async with running.platform_of(environment, "worker") as copy:
        files = await _compare_files(copy, manifest)
        answers = await _compare_answers(copy, manifest)
    tables = [table for owner in manifest.owners for table in owner.tables]
    rows = sum(table.rows for table in tables)
    return chosen, [
        f"{chosen} was restored into a temporary instance",
        f"{len(tables)} tables with {rows} rows are the same, row by row",
        files,
        answers,
    ]


def _environment(platform: Platform, home: Path) -> dict[str, str]:
    """A temporary home with the real backup folder and key, and the settings that answers depend on.

    Everything else stays at its default, so that a rehearsal reaches none of the platform's stores and
    servers.
    """
    from builtin_plugins.platform_ops.settings import OpsSettings

    settings, isolated = platform.settings_of(OpsSettings), isolated_environment(home)
    backup_settings: dict[str, Any] = {
        "TO": settings.backup_to or platform.settings.home / "backups",
        "PASSPHRASE": settings.backup_passphrase and settings.backup_passphrase.get_secret_value(),
        "KEY_FILE": settings.backup_key_file and settings.backup_key_file.absolute(),
    }
    answering = variables(lambda name: name.startswith(_ANSWERING))
    _copy_config(platform.settings.home / "config.yaml", home / "config.yaml")
    (home / "cache").symlink_to(
        platform.settings.home.absolute() / "cache"
    )  # 200 MB that needn't be made again
    return {
        **isolated,
        **answering,
        **{f"{_BACKUP}{key}": str(value) for key, value in backup_settings.items() if value},
    }


def _copy_config(source: Path, target: Path) -> None:
    """Copy the sections of `config.yaml` that answers depend on."""
    import yaml

    if not source.is_file():
        return
    config = yaml.safe_load(source.read_text(encoding="utf-8")) or {}
    sections = {name: config[name] for name in _SECTIONS if name in config}
    disabled = (config.get("kernel") or {}).get("plugins_disabled")
    if disabled:
        sections["kernel"] = {"plugins_disabled": disabled}
    target.write_text(yaml.safe_dump(sections), encoding="utf-8")


async def _compare_files(copy: Platform, manifest: ArchiveManifest) -> str:
    for content in manifest.blobs:
        path = await copy.blobs.local(content.sha256)
        if await asyncio.to_thread(_digest, path) != content.sha256:
            raise CommandFailed(f"the restored file {content.sha256[:12]}… differs")
    return f"{len(manifest.blobs)} uploaded files are the same, byte by byte"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


async def _compare_answers(copy: Platform, manifest: ArchiveManifest) -> str:
    from builtin_plugins.platform_ops.backup.service import answers_of

    if not manifest.answers:
        return "no questions were recorded in this backup"
    answers_by_question = {item.question: item.answer for item in await answers_of(copy)}
    for item in manifest.answers:
        if answers_by_question.get(item.question) != item.answer:
            raise CommandFailed(f"the restored copy gives a different answer to: {item.question[:200]}")
    return f"{len(manifest.answers)} recorded questions have the same answers, byte by byte"
