"""The manifests that are live in this process, kept in step with the watched folder."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel.sdk import ResourceKey, data_folder

from .catalog import EMPTY, resolve
from .loading import read_manifest
from .manifest import Manifest
from .problems import ManifestError, Problem
from .validation import check_manifest, oddities
from .watching import SETTLED_SECONDS, Changes, Fingerprint, Snapshot, scan, watch

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

log = logging.getLogger("platform.manifests")

SCHEMA_FILE = "manifest.v1alpha1.schema.json"


@dataclass(frozen=True, slots=True)
class LiveManifest:
    """A manifest in service: its file, when that was last written, and what is odd about it."""

    manifest: Manifest
    path: Path
    written_at: datetime
    oddities: tuple[Problem, ...]

    @property
    def name(self) -> str:
        return self.manifest.name


@dataclass(frozen=True, slots=True)
class _Read:
    fingerprint: Fingerprint
    found: Manifest | tuple[Problem, ...]
    oddities: tuple[Problem, ...] = ()


class ManifestFolder:
    """Reads a folder's manifests, again whenever they change, and decides which of them are live.

    `taken_names` returns the names that belong to code.
    """

    def __init__(self) -> None:
        self.directory = Path()
        self.catalog = EMPTY
        self._taken_names: Callable[[], frozenset[str]] = frozenset
        self._read: dict[Path, _Read] = {}
        self._paths: dict[str, str] = {}
        self._turn = asyncio.Lock()

    @cached_property
    def schema_document(self) -> Mapping[str, Any]:
        """The published JSON Schema of a manifest."""
        path = data_folder("schemas") / SCHEMA_FILE
        document: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return document

    @cached_property
    def validator(self) -> Validator:
        """The schema, made ready for checking."""
        from .schema import compile_schema

        return compile_schema(self.schema_document)

    @asynccontextmanager
    async def watched(
        self, directory: Path, taken_names: Callable[[], frozenset[str]]
    ) -> AsyncIterator[None]:
        """Everything in it is live when the block begins, and changes follow within 2 s."""
        self.directory, self._taken_names = directory, taken_names
        known = await self.refresh()
        stop = asyncio.Event()
        task = asyncio.create_task(watch(self.directory, self._changed, stop, known), name="manifests")
        try:
            yield
        finally:
            stop.set()
            await task

    async def refresh(self) -> Snapshot:
        """Scan the folder now and return what is in it."""
        async with self._turn:
            files = await asyncio.to_thread(scan, self.directory)
            self._read = await asyncio.to_thread(self._reread, files)
            self._decide()
            return files

    async def settle(self) -> None:
        """Give an editor the time to put a file back, then scan."""
        await asyncio.sleep(SETTLED_SECONDS)
        await self.refresh()

    def at(self, webhook_path: str) -> LiveManifest | None:
        """The live manifest with this webhook path, leading slash included."""
        name = self._paths.get(webhook_path)
        return None if name is None else self.get(name)

    def get(self, name: str) -> LiveManifest | None:
        """The live manifest of a plugin."""
        manifest = self.catalog.live.get(name)
        if manifest is None:
            return None
        path = self.directory / self.catalog.sources[name]
        read = self._read[path]
        return LiveManifest(manifest, path, _time(read.fingerprint), read.oddities)

    def live(self) -> Iterator[LiveManifest]:
        """Every live manifest, by name."""
        found = (self.get(name) for name in sorted(self.catalog.live))
        return (manifest for manifest in found if manifest is not None)

    def refused(self) -> Iterator[tuple[str, str, datetime]]:
        """(file name, reason, last written) of every file that is not live."""
        for name, reason in sorted(self.catalog.refused.items()):
            written = _time(self._read[self.directory / name].fingerprint)
            yield name, reason.removeprefix(f"{name}: "), written

    def file_of(self, plugin: str) -> Path | None:
        """The file of a live plugin, or of a refused one, which goes by its file name."""
        name = self.catalog.sources.get(plugin) or (plugin if plugin in self.catalog.refused else None)
        return None if name is None else self.directory / name

    async def _changed(self, changes: Changes) -> None:
        await self.refresh()
        names = sorted(path.name for path in changes.added | changes.changed | changes.removed)
        log.info("manifests changed: %s", ", ".join(names))

    def _reread(self, files: Snapshot) -> dict[Path, _Read]:
        return {path: self._one(path, fingerprint) for path, fingerprint in files.items()}

    def _one(self, path: Path, fingerprint: Fingerprint) -> _Read:
        known = self._read.get(path)
        if known is not None and known.fingerprint == fingerprint:
            return known
        try:
            tree = read_manifest(path, within=self.directory)
            found = check_manifest(tree, self.validator, path.name)
        except ManifestError as error:
            return _Read(fingerprint, tuple(error.problems))
        return _Read(fingerprint, found, tuple(oddities(tree, found, self.validator)))

    def _decide(self) -> None:
        before = self.catalog.refused
        files = {path.name: read.found for path, read in self._read.items()}
        self.catalog = resolve(files, self._taken_names(), self.catalog)
        self._paths = {manifest.webhook.path: name for name, manifest in self.catalog.live.items()}
        for name, reason in self.catalog.refused.items():
            if before.get(name) != reason:
                log.warning("a manifest was refused: %s", reason)


def _time(fingerprint: Fingerprint) -> datetime:
    return datetime.fromtimestamp(fingerprint[2] / 1e9, UTC)


FOLDER: ResourceKey[ManifestFolder] = ResourceKey("manifests folder")
