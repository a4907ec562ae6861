"""Manifests as plugins: listed, installed and removed through the platform's directory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from builtin_plugins.tools.api import Directory, PluginEntry, PluginSource
from builtin_plugins.vectors.api import VECTORS
from kernel.sdk import (
    Action,
    BadRequest,
    Conflict,
    NotFound,
    Platform,
    ResourceKey,
    Unavailable,
    Unit,
    Unprocessable,
    off_the_loop,
)

from .claims import forget_claims, holder_of
from .files import add_file, remove_file, replace_file
from .folder import LiveManifest, name_of
from .live_folder import WatchedFolder
from .loading import load_manifest
from .manifest import Manifest
from .problems import ManifestError, Problem
from .searching import search_action
from .secrets import how_to_set, missing_secret
from .storing import PointKeeper
from .validation import check_manifest

NAME = "manifest"
_REASON_LIMIT = 1000

P = ParamSpec("P")
T = TypeVar("T")


class ManifestSource:
    """The plugin source of a manifest folder (`kernel.sdk.PluginSource`)."""

    name = NAME

    def __init__(self, platform: Platform, folder: WatchedFolder) -> None:
        self._platform = platform
        self._folder = folder
        self._installing = asyncio.Lock()

    def schema(self) -> Mapping[str, Any]:
        return self._folder.schema_document

    async def plugins(self) -> Sequence[PluginEntry]:
        live = list(self._folder.live())
        missing = await asyncio.to_thread(lambda: [self._missing_secret(one.manifest) for one in live])
        entries = [_entry(one, secret) for one, secret in zip(live, missing, strict=True)]
        return [*entries, *(_refused(*file) for file in self._folder.refused())]

    async def actions(self, plugin: str) -> Sequence[Action]:
        live = self._folder.get(plugin)
        return [] if live is None else [search_action(live, self._folder)]

    async def install(self, document: bytes, media_type: str, *, update: bool) -> PluginEntry:
        async with self._installing:
            await self._folder.refresh()
            manifest = await asyncio.to_thread(self._checked, document, media_type)
            installed = self._claim(manifest, update=update)
            before = (
                None if installed is None else await asyncio.to_thread(_guarded, installed.path.read_bytes)
            )
            path = await asyncio.to_thread(self._write, manifest.name, document, installed)
            await self._folder.refresh()
            return await self._entry_of(manifest.name, path, before)

    def remove(self, unit: Unit, plugin: str) -> bool:
        path = self._folder.file_of(plugin)
        # The file goes first: a running delivery checks for it before storing (see `storing`).
        if path is not None:
            off_the_loop(partial(_guarded, remove_file, path))
        file = holder_of(unit.session, plugin) if path is None else name_of(path)
        # An unreadable file keeps its claims, whatever is removed.
        had_file = file is not None and (path is not None or file not in self._folder.catalog.refused)
        if file is not None and had_file:
            forget_claims(unit, file)
        stored = PointKeeper(self._platform.resource(VECTORS)).forget(unit, plugin)
        unit.after_commit(self.refresh)
        unit.after_commit(self._platform.database.scrub)
        return had_file or stored

    async def refresh(self) -> None:
        await self._folder.refresh()

    def _missing_secret(self, manifest: Manifest) -> str | None:
        return missing_secret(self._platform, manifest)

    def _checked(self, document: bytes, media_type: str) -> Manifest:
        """The manifest in a request. Raises BadRequest (unreadable, nameless), Unprocessable (not valid)."""
        json_only = "json" in media_type.lower() and not document.lstrip().startswith(b"apiVersion")
        source = "manifest.json" if json_only else "manifest.yaml"
        try:
            tree = load_manifest(document, source)
        except ManifestError as error:
            raise BadRequest(f"The manifest can't be read: {error.problems[0]}") from None
        metadata = tree.get("metadata")
        if not isinstance(metadata, dict) or not metadata.get("name"):
            raise BadRequest("The manifest has no name: add metadata.name")
        try:
            return check_manifest(tree, self._folder.validator, source)
        except ManifestError as error:
            raise Unprocessable([_problem(problem) for problem in error.problems]) from None

    def _claim(self, manifest: Manifest, *, update: bool) -> LiveManifest | None:
        """The installed manifest to update. Raises Conflict or NotFound if the document can't replace one."""
        name, path = manifest.name, manifest.webhook.path
        installed, holder = self._folder.get(name), self._folder.at(path)
        if name in Directory(self._platform).taken_names():
            raise Conflict(f"The name '{name}' belongs to an installed plugin; choose another metadata.name")
        if installed is None and update:
            raise NotFound(f"No plugin '{name}' is installed from a manifest")
        if installed is not None and not update:
            raise Conflict(f"The plugin '{name}' is already installed")
        if holder is not None and holder.name != name:
            raise Conflict(f"The webhook path '{path}' belongs to the plugin '{holder.name}'; choose another")
        reason = None if installed is None else self._folder.why_refused(name_of(installed.path), manifest)
        if reason is not None:
            raise Conflict(reason)
        return installed

    def _write(self, name: str, document: bytes, installed: LiveManifest | None) -> Path:
        if installed is not None:
            return _guarded(replace_file, installed.path, document)
        return _guarded(add_file, self._folder.directory, name, document)

    async def _entry_of(self, name: str, path: Path, before: bytes | None) -> PluginEntry:
        """The entry of what was just written.

        If another process was quicker with the same claim, the file's content `before` is restored.
        """
        file = name_of(path)
        reason = self._folder.catalog.refused.get(file)
        if reason is not None:
            undo = partial(remove_file, path) if before is None else partial(replace_file, path, before)
            await asyncio.to_thread(_guarded, undo)
            await self._folder.refresh()
            raise Conflict(reason.removeprefix(f"{file}: "))
        entry = next((entry for entry in await self.plugins() if entry.name == name), None)
        if entry is None:
            raise Conflict(f"The plugin '{name}' was removed while it was being installed")
        return entry


SOURCE: ResourceKey[PluginSource] = ResourceKey("manifests")


def _guarded(function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    try:
        return function(*arguments, **options)
    except OSError as error:
        raise Unavailable(f"Can't write to the manifests folder: {error.strerror}") from None


def _entry(live: LiveManifest, missing: str | None) -> PluginEntry:
    manifest = live.manifest
    problems = [how_to_set(missing)] if missing else []
    return PluginEntry(
        name=live.name,
        status="enabled",
        source=NAME,
        version=manifest.metadata.version,
        description=manifest.metadata.description,
        problem="; ".join([*problems, *map(str, live.oddities)])[:_REASON_LIMIT] or None,
        capabilities=("webhook", "store-vector", "search"),
        data_sources=(f"webhook:{manifest.webhook.path}",),
        databases=(f"vectors:{manifest.store.collection}",),
        webhooks=(manifest.webhook.path,),
        registered_at=live.written_at,
    )


def _refused(file: str, reason: str, written: datetime) -> PluginEntry:
    return PluginEntry(file, "error", NAME, reason=reason[:_REASON_LIMIT], registered_at=written)


def _problem(problem: Problem) -> dict[str, Any]:
    """The wire's item (wire-facts 6.2), with the keys that every 422 of the platform has."""
    steps = problem.path.split(" -> ") if problem.path != "root" else []
    common = {
        "type": "manifest_invalid",
        "loc": ["body", *steps],
        "msg": f"{problem.message}. {problem.remedy}",
    }
    return {**common, "input": problem.failed_value, **problem.as_dict()}
