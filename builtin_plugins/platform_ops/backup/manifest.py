"""An archive's list of contents: `manifest.json`, alone in a small `.tar.gz` with the archive's name.

Nothing in it is trusted unchecked: names must match patterns, contents are hashes, sizes have limits.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import tarfile
import zlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from builtin_plugins.platform_ops.backup.errors import ArchiveBroken
from builtin_plugins.platform_ops.backup.sealing import Sealed
from builtin_plugins.platform_ops.backup.storage import BackupStore

NAME = re.compile(r"platform-[0-9]{8}-[0-9]{6}\.tar\.gz")
"""The names of archives (wire-facts 9.4): the date and time of creation, in UTC."""
_MEMBER = "manifest.json"
_LARGEST_FILE = 128 * 1024 * 1024
_LARGEST = 512 * 1024 * 1024

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Identifier = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,62}$")]
Count = Annotated[int, Field(ge=0, le=2**53)]
Kind = Literal["bool", "bytes", "date", "decimal", "float", "int", "json", "text", "time", "uuid"]


def _relative(path: str) -> str:
    relative = PurePosixPath(path)
    if not path or relative.is_absolute() or ".." in relative.parts or "\0" in path or "\\" in path:
        raise ValueError("a path leads outside")
    return path


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Content(_Part):
    """Bytes, in pieces."""

    sha256: Digest
    size: Count
    pieces: list[Digest]


class ArchivedFile(Content):
    """A file in a plugin's folder."""

    folder: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.-]{0,62}$")]
    path: Annotated[str, Field(max_length=1000), AfterValidator(_relative)]


class Column(_Part):
    """A column, and how its values are encoded."""

    name: Identifier
    kind: Kind


class ArchivedTable(_Part):
    """The rows of a table: a JSON array on each line.

    `digest` is the sum of the rows' hashes, independent of their order. `highest` is the last number that the
    table's sequence gave to a row.
    """

    name: Identifier
    columns: list[Column]
    rows: Count
    digest: Digest
    highest: Count | None = None
    pieces: list[Digest]


class ArchivedOwner(_Part):
    """An owner of tables, and their Alembic revision."""

    name: Identifier
    revision: Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,64}$")] | None
    tables: list[ArchivedTable]


class ArchivedAnswer(_Part):
    """A question asked when the archive was made, and the exact text of the answer."""

    question: str
    answer: str


class ArchiveManifest(_Part):
    """Everything that an archive contains."""

    format: Literal["platform.backup"] = "platform.backup"
    version: Literal[1] = 1
    created_at: datetime
    made_by: str
    database: Literal["sqlite", "postgresql"]
    reason: str
    owners: list[ArchivedOwner]
    blobs: list[Content]
    files: list[ArchivedFile]
    without: list[str]
    missing: list[Digest] = []
    """Uploaded files that rows refer to, but whose stored content was missing or damaged."""
    rebuilt: list[str]
    answers: list[ArchivedAnswer]
    stored_bytes: Count
    sealed: Sealed | None = None

    def pieces(self) -> Iterator[str]:
        """All pieces that it needs, possibly with repetitions."""
        for owner in self.owners:
            for table in owner.tables:
                yield from table.pieces
        for content in (*self.blobs, *self.files):
            yield from content.pieces

    def about(self) -> bytes:
        """What the sealed part authenticates: everything else. Archives of 0.1.0 have no `missing`."""
        unsealed = self.model_copy(update={"sealed": None})
        text = unsealed.model_dump_json(exclude=None if self.missing else {"missing"})
        return hashlib.sha256(text.encode()).digest()

    @property
    def revisions(self) -> dict[str, str | None]:
        """From owner to revision."""
        return {owner.name: owner.revision for owner in self.owners}


def packed(manifest: ArchiveManifest) -> bytes:
    """The file with the archive's name."""
    content = manifest.model_dump_json(indent=1).encode()
    inside = io.BytesIO()
    with tarfile.open(fileobj=inside, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        member = tarfile.TarInfo(_MEMBER)
        member.size, member.mode = len(content), 0o600
        member.mtime = int(manifest.created_at.timestamp())
        tar.addfile(member, io.BytesIO(content))
    return gzip.compress(inside.getvalue(), mtime=0)


def read_manifest(place: BackupStore, name: str) -> ArchiveManifest:
    """The manifest of an archive. Raises FileNotFoundError, ArchiveBroken."""
    stored = place.read(name, _LARGEST_FILE)
    if len(stored) > _LARGEST_FILE:
        raise ArchiveBroken(f"{name} is too large to be a backup")
    try:
        return ArchiveManifest.model_validate_json(_only_member(_decompressed(stored)))
    except ArchiveBroken as error:
        raise ArchiveBroken(f"{name} is not a backup of the platform, or it is damaged: {error}") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place_in = ".".join(map(str, first["loc"]))
        raise ArchiveBroken(
            f"{name} is not a backup of the platform, or it is damaged: {place_in}: {first['msg']}"
        ) from None


def _decompressed(stored: bytes) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(stored)) as file:
            content = file.read(_LARGEST + 1)
    except (OSError, EOFError, zlib.error):
        raise ArchiveBroken("it can't be decompressed") from None
    if len(content) > _LARGEST:
        raise ArchiveBroken("it grows too large")
    return content


def _only_member(content: bytes) -> bytes:
    """The only file inside; anything else, such as links or paths, was not made by the platform."""
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
            members = [member for _, member in zip(range(2), tar, strict=False)]
            if len(members) != 1 or members[0].name != _MEMBER or not members[0].isreg():
                raise ArchiveBroken(f"it must contain {_MEMBER} and nothing else")
            file = tar.extractfile(members[0])
            data = b"" if file is None else file.read()
            if len(data) != members[0].size:
                raise ArchiveBroken("it is truncated")
            return data
    except tarfile.TarError:
        raise ArchiveBroken("it is not a tar archive") from None
