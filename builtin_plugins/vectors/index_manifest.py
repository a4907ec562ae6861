"""What a saved index says about itself, and whether its files are whole."""

from __future__ import annotations

import hashlib
import os
import zlib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from kernel.sdk import sync

FILE = "manifest.json"
FORMAT = 1
_BLOCK = 2**20


class IndexManifest(BaseModel):
    """A saved index: of which collection and version, made by which software, of which files.

    `token` is also in the database: one that was set back to an earlier state doesn't have it. All that was
    deleted before `built_at` (seconds since 1970) is not in the files; `deleted` counts later deletions
    whose words may still be there. `parameters` are the index's own. `files` have sizes and CRC-32.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: int = FORMAT
    software: str
    collection: int
    kind: str
    engine: str
    version: int
    token: str
    built_at: float
    deleted: int
    parameters: dict[str, str]
    files: dict[str, tuple[int, int]]


def write_manifest(folder: Path, manifest: IndexManifest) -> None:
    """Write the manifest into `folder` and sync both. Raises OSError."""
    text = manifest.model_dump_json()
    file = folder / FILE
    file.write_text(f"{_digest(text)}\n{text}", encoding="utf-8")
    sync(file)
    sync(folder)


def read_manifest(folder: Path) -> IndexManifest | None:
    """The manifest in `folder`; None if it is missing, torn or of another format."""
    try:
        digest, _, text = (folder / FILE).read_text(encoding="utf-8").partition("\n")
        manifest = IndexManifest.model_validate_json(text) if digest == _digest(text) else None
    except (OSError, UnicodeDecodeError, ValidationError):
        return None
    return manifest if manifest is not None and manifest.format == FORMAT else None


def checksums(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and CRC-32 of each file in `folder` except the manifest. Raises OSError."""
    files = [file for file in sorted(folder.iterdir()) if file.name != FILE]
    return {file.name: (file.stat().st_size, _checksum(file)) for file in files}


def is_whole(folder: Path, manifest: IndexManifest) -> bool:
    """Whether `folder` holds exactly the files of the manifest, unchanged. Raises OSError."""
    sizes = {file.name: file.stat().st_size for file in folder.iterdir() if file.name != FILE}
    if sizes != {name: size for name, (size, _) in manifest.files.items()}:
        return False
    return checksums(folder) == manifest.files


def _checksum(file: Path) -> int:
    checksum = 0
    with file.open("rb") as stream:
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)
        while block := stream.read(_BLOCK):
            checksum = zlib.crc32(block, checksum)
    return checksum


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
