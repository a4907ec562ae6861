"""The archives at one place: list, read, verify, keep the newest. All calls block."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from builtin_plugins.platform_ops.backup.errors import ArchiveBroken, BackupFailed
from builtin_plugins.platform_ops.backup.manifest import NAME, ArchiveManifest, Content, packed, read_manifest
from builtin_plugins.platform_ops.backup.objects import Objects
from builtin_plugins.platform_ops.backup.rows import check_rows
from builtin_plugins.platform_ops.backup.sealing import Sealer, sealer_of
from builtin_plugins.platform_ops.backup.storage import BackupStore, FolderPlace, StoredFile, place_at
from builtin_plugins.platform_ops.settings import OpsSettings
from kernel.sdk import utc_now

_NAMED = "platform-%Y%m%d-%H%M%S.tar.gz"

Tell = Callable[[str, int], None]
"""Called with the current work, and how much further it got."""


def tell_nobody(_what: str, _by: int) -> None:
    """The default: reports no progress."""


@dataclass(frozen=True)
class Archive:
    """An archive by name. `size` counts its manifest and all of its pieces, in bytes."""

    name: str
    size: int
    modified_at: datetime


class Archives:
    """The archives at the configured place. Raises BackupFailed for invalid settings."""

    def __init__(self, settings: OpsSettings, home: Path, to: str | None = None) -> None:
        self._settings = settings
        self.place: BackupStore = place_at(settings.backup_to if to is None else to, home)
        self.objects = Objects(self.place)
        self.sealer: Sealer | None = sealer_of(settings)

    def entries(self) -> list[StoredFile]:
        """The archive files, newest name first."""
        archives = [entry for entry in self.place.entries("") if NAME.fullmatch(entry.name)]
        return sorted(archives, key=lambda entry: entry.name, reverse=True)

    def manifest(self, name: str) -> ArchiveManifest:
        """An archive's manifest. Raises FileNotFoundError, ArchiveBroken."""
        if not NAME.fullmatch(name):
            raise FileNotFoundError(name)
        return read_manifest(self.place, name)

    def newest(self) -> str:
        """The name of the newest archive. Raises BackupFailed."""
        entries = self.entries()
        if not entries:
            raise BackupFailed(f"there is no backup in {self.place}; make one: platformctl backup create")
        return entries[0].name

    def newest_sound(
        self, known_results: dict[tuple[str, datetime], bool] | None = None
    ) -> StoredFile | None:
        """The newest archive that can be read and has all of its pieces; None if there is none.

        Without reading the pieces: `verify` does. `known_results` remembers the results.
        """
        results = {} if known_results is None else known_results
        stored: set[str] | None = None
        for entry in self.entries():
            key = (entry.name, entry.modified_at)
            if key not in results:
                stored = self.objects.stored() if stored is None else stored
                results[key] = self._is_sound(entry.name, stored)
            if results[key]:
                return entry
        return None

    def _is_sound(self, name: str, stored: set[str]) -> bool:
        try:
            return stored.issuperset(self.manifest(name).pieces())
        except (ArchiveBroken, FileNotFoundError):
            return False

    def begin(self) -> None:
        """Remove what a killed backup left half-written. Only under the lock of archiving."""
        if isinstance(self.place, FolderPlace):
            self.place.sweep()
        self.objects.load_sizes()

    def finish(self, manifest: ArchiveManifest) -> str:
        """Write the manifest, which completes the archive; returns its name.

        The name sorts after all existing ones, even if a clock was wrong: an archive from the future must not
        stay the newest, nor the new one become the oldest.
        """
        moment = utc_now().replace(tzinfo=None, microsecond=0)
        for entry in self.entries():
            with suppress(ValueError, OverflowError):  # not a timestamp
                moment = max(moment, datetime.strptime(entry.name, _NAMED) + timedelta(seconds=1))
        name = moment.strftime(_NAMED)
        self.place.write(name, packed(manifest))
        return name

    def keep_newest(self, also: Iterable[str] = (), replaced: str | None = None) -> int:
        """Remove `replaced`, all archives except the newest and `also`, and unneeded pieces; returns how many
        archives.
        """
        entries = self.entries()
        fresh = [entry.name for entry in entries if entry.name != replaced]
        kept_names = set(fresh[: self._settings.backup_keep]) | set(also)
        old = [entry.name for entry in entries if entry.name not in kept_names]
        for name in old:
            self.place.remove(name)
        try:
            needed = {piece for name in kept_names for piece in self.manifest(name).pieces()}
        except (ArchiveBroken, FileNotFoundError):
            return len(old)  # a damaged archive's pieces are unknown: keep everything
        self.objects.remove_all_but(needed)
        return len(old)

    def verify(self, name: str, tell: Tell = tell_nobody) -> ArchiveManifest:
        """Read every byte of an archive. Raises FileNotFoundError, ArchiveBroken."""
        manifest = self.manifest(name)
        for owner in manifest.owners:
            for table in owner.tables:
                check_rows(table, self.objects, tell)
        for content in (*manifest.blobs, *manifest.files):
            self._check(content)
            tell("files", 1)
        return manifest

    def _check(self, content: Content) -> None:
        digest, size = hashlib.sha256(), 0
        for piece in self.objects.read_all(content.pieces):
            digest.update(piece)
            size += len(piece)
        if (digest.hexdigest(), size) != (content.sha256, content.size):
            raise ArchiveBroken(f"the content {content.sha256[:12]}… is not what was archived")


class ArchiveSizes:
    """Caches the sizes of archives, which only their manifests contain."""

    def __init__(self) -> None:
        self._sizes: dict[tuple[str, datetime], int] = {}

    def of(self, archives: Archives) -> list[Archive]:
        """All archives, newest name first; an unreadable one counts with its own file only."""
        archives_out = []
        for entry in archives.entries():
            key = (entry.name, entry.modified_at)
            if key not in self._sizes:
                self._sizes[key] = entry.size + self._stored(archives, entry.name)
            archives_out.append(Archive(entry.name, self._sizes[key], entry.modified_at.astimezone(UTC)))
        return archives_out

    @staticmethod
    def _stored(archives: Archives, name: str) -> int:
        try:
            return archives.manifest(name).stored_bytes
        except (ArchiveBroken, FileNotFoundError):
            return 0
