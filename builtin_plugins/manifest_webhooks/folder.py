"""The manifests of a folder, and which of them are live."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel.sdk.operations import data_folder

from .catalog import EMPTY, Catalog, Holders, resolve
from .folder_watch import Fingerprint, scan
from .loading import read_manifest
from .manifest import Manifest
from .problems import ManifestError, Problem
from .validation import check_manifest, oddities

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

log = logging.getLogger("platform.manifests")

SCHEMA_FILE = "manifest.v1alpha1.schema.json"


@dataclass(frozen=True, slots=True)
class LiveManifest:
    """A live manifest: its file, when that was last written, and warnings about it."""

    manifest: Manifest
    path: Path
    written_at: datetime
    oddities: tuple[Problem, ...]

    @property
    def name(self) -> str:
        return self.manifest.name


@dataclass(frozen=True, slots=True)
class _Read:
    path: Path
    fingerprint: Fingerprint
    outcome: Manifest | tuple[Problem, ...]
    oddities: tuple[Problem, ...] = ()


class ManifestFolder:
    """Reads a folder's manifests, and decides which of them are live."""

    def __init__(self, directory: Path, taken_names: Callable[[], frozenset[str]]) -> None:
        self.directory = directory
        self.catalog = EMPTY
        self._taken_names = taken_names
        self._read: Mapping[str, _Read] = {}
        self._paths: dict[str, str] = {}

    @cached_property
    def schema_document(self) -> Mapping[str, Any]:
        """The published JSON Schema of a manifest."""
        path = data_folder("schemas") / SCHEMA_FILE
        document: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return document

    @cached_property
    def validator(self) -> Validator:
        """The compiled schema."""
        from .schema import compile_schema

        return compile_schema(self.schema_document)

    def look(self, holders: Holders) -> None:
        """Read the folder once, and decide as running processes do, by the claims in `holders`. Blocks."""
        read = self._reread()
        self._put(read, self._resolved(read, holders))

    def at(self, webhook_path: str) -> LiveManifest | None:
        """The live manifest with this webhook path, leading slash included."""
        name = self._paths.get(webhook_path)
        return None if name is None else self.get(name)

    def get(self, name: str) -> LiveManifest | None:
        """The live manifest of a plugin."""
        manifest = self.catalog.live.get(name)
        if manifest is None:
            return None
        read = self._read[self.catalog.sources[name]]
        return LiveManifest(manifest, read.path, _time(read.fingerprint), read.oddities)

    def live(self) -> Iterator[LiveManifest]:
        """Every live manifest, by name."""
        manifests = (self.get(name) for name in sorted(self.catalog.live))
        return (manifest for manifest in manifests if manifest is not None)

    def refused(self) -> Iterator[tuple[str, str, datetime]]:
        """(file name, reason, last written) of every file that is not live."""
        for name, reason in sorted(self.catalog.refused.items()):
            written = _time(self._read[name].fingerprint)
            yield name, reason.removeprefix(f"{name}: "), written

    def file_of(self, plugin: str) -> Path | None:
        """The file of a live plugin, or of a refused one, which goes by its file name."""
        name = self.catalog.sources.get(plugin) or (plugin if plugin in self.catalog.refused else None)
        return None if name is None else self._read[name].path

    def why_refused(self, file: str, manifest: Manifest) -> str | None:
        """What would keep this manifest from being live in that file."""
        files = {**{name: one.outcome for name, one in self._read.items()}, file: manifest}
        reason = resolve(files, self._taken_names(), self.catalog.holders).refused.get(file)
        return None if reason is None else reason.removeprefix(f"{file}: ")

    def _reread(self) -> dict[str, _Read]:
        """Every file by its name, made safe for the database and terminals."""
        files = scan(self.directory)
        return {name_of(path): self._read_file(path, fingerprint) for path, fingerprint in files.items()}

    def _read_file(self, path: Path, fingerprint: Fingerprint) -> _Read:
        earlier = self._read.get(name_of(path))
        if earlier is not None and earlier.fingerprint == fingerprint:
            return earlier
        try:
            tree = read_manifest(path, within=self.directory)
            manifest = check_manifest(tree, self.validator, path.name)
        except ManifestError as error:
            return _Read(path, fingerprint, tuple(error.problems))
        return _Read(path, fingerprint, manifest, tuple(oddities(tree, manifest, self.validator)))

    def _resolved(self, read: Mapping[str, _Read], holders: Holders) -> Catalog:
        return resolve({file: one.outcome for file, one in read.items()}, self._taken_names(), holders)

    def _put(self, read: Mapping[str, _Read], catalog: Catalog) -> None:
        before = self.catalog.refused
        self._read, self.catalog = read, catalog
        self._paths = {manifest.webhook.path: name for name, manifest in catalog.live.items()}
        for name, reason in catalog.refused.items():
            if before.get(name) != reason:
                log.warning("a manifest was refused: %s", reason)


def name_of(path: Path) -> str:
    """A file's name with the bytes that are not UTF-8 written out."""
    return os.fsencode(path.name).decode("utf-8", "backslashreplace")


def _time(fingerprint: Fingerprint) -> datetime:
    return datetime.fromtimestamp(fingerprint[2] / 1e9, UTC)
