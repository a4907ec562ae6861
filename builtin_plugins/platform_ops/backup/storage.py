"""Where archives are: a folder, or any address that fsspec knows, such as ``s3://bucket/folder``.

A place contains archives by name, and their pieces in `objects/`. Names are ours, never a caller's. All calls
block: run them in a thread.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from builtin_plugins.platform_ops.backup.errors import BackupFailed, StorageAway
from kernel.sdk import ANY_ERROR, is_machine_fault, sync
from kernel.sdk.telemetry import mask

_TEMPORARY = ".new-"


@dataclass(frozen=True)
class StoredFile:
    """A file of a place: its name within, its size in bytes, and when it was written."""

    name: str
    size: int
    modified_at: datetime


class BackupStore(Protocol):
    """Files by name. A written file is durable; a file is complete or absent."""

    def check(self) -> None:
        """Check that it can be written to, without changing anything. Raises BackupFailed."""
        ...

    def entries(self, folder: str) -> Iterator[StoredFile]:
        """The files below `folder`, an empty one if there is no such folder."""
        ...

    def read(self, name: str, limit: int) -> bytes:
        """A file's content; at most `limit` + 1 bytes of it. Raises FileNotFoundError."""
        ...

    def write(self, name: str, content: bytes) -> None:
        """Write a file atomically: all of it or nothing."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        ...


def place_at(address: str, home: Path) -> BackupStore:
    """The storage for an address; if empty, `backups` in PLATFORM_HOME. Raises BackupFailed."""
    if "://" not in address:
        return FolderPlace(Path(address).expanduser().absolute() if address else home / "backups")
    try:
        import fsspec  # type: ignore[import-untyped]

        filesystem, root = fsspec.core.url_to_fs(address, skip_instance_cache=True)
    except ImportError as error:
        remedy = ": pip install 'platform-kernel[s3]'" if address.startswith("s3") else ""
        raise BackupFailed(f"{mask(address)}: {mask(str(error))}{remedy}") from None
    except (ValueError, OSError) as error:  # some libraries connect right away
        raise StorageAway(f"{mask(address)}: {mask(str(error))}") from None
    if "file" in _protocols(filesystem):
        return FolderPlace(Path(root))
    return RemotePlace(filesystem, root.rstrip("/"))


def _protocols(filesystem: Any) -> tuple[str, ...]:
    protocol = filesystem.protocol
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)


class FolderPlace:
    """A folder on this machine; only its owner can read it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __str__(self) -> str:
        return str(self._folder)

    def check(self) -> None:
        there = next(path for path in (self._folder, *self._folder.parents) if path.exists())
        if not there.is_dir():
            raise BackupFailed(f"{self._folder}: {there} is not a folder")
        if not os.access(there, os.W_OK | os.X_OK):
            raise BackupFailed(f"{self._folder} can't be written: no right to write to {there}")

    def entries(self, folder: str) -> Iterator[StoredFile]:
        top = self._folder / folder
        pattern = "*/*" if folder else "*"
        for path in top.glob(pattern) if top.is_dir() else ():
            with suppress(FileNotFoundError):
                if path.is_file() and not path.is_symlink() and not path.name.startswith(_TEMPORARY):
                    status = path.stat()
                    when = datetime.fromtimestamp(status.st_mtime, UTC)
                    yield StoredFile(str(path.relative_to(self._folder)), status.st_size, when)

    def read(self, name: str, limit: int) -> bytes:
        # Through a link, somebody could have another file read as an archive.
        handle = os.open(self._folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            return file.read(limit + 1)

    def write(self, name: str, content: bytes) -> None:
        target = self._folder / name
        if not target.parent.is_dir():
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            sync(target.parent.parent)
        temporary = target.parent / f"{_TEMPORARY}{secrets.token_hex(8)}"
        try:
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        except BaseException:  # even a thread that is told to stop must leave no half-written file
            temporary.unlink(missing_ok=True)
            raise
        sync(target.parent)

    def remove(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove files that a killed process had begun to write. Only under the lock of archiving."""
        for path in self._folder.rglob(f"{_TEMPORARY}*"):
            path.unlink(missing_ok=True)


class RemotePlace:
    """An fsspec address. Writing a file is atomic there, as in object stores."""

    def __init__(self, filesystem: Any, root: str) -> None:
        self._files = filesystem
        self._root = root

    def __str__(self) -> str:
        return mask(str(self._files.unstrip_protocol(self._root)))

    def check(self) -> None:
        """Checks nothing: only writing shows whether it can be written to."""

    def entries(self, folder: str) -> Iterator[StoredFile]:
        top = f"{self._root}/{folder}" if folder else self._root
        self._files.invalidate_cache()
        try:
            with self._explained():
                files_by_path = self._files.find(top, detail=True, maxdepth=2 if folder else 1)
        except FileNotFoundError:
            return
        for path, about in files_by_path.items():
            name = path.removeprefix(self._root).lstrip("/")
            yield StoredFile(
                name, int(about["size"] or 0), _moment(about, partial(self._files.modified, path))
            )

    def read(self, name: str, limit: int) -> bytes:
        with self._explained():
            content: bytes = self._files.cat_file(f"{self._root}/{name}", start=0, end=limit + 1)
        return content

    def write(self, name: str, content: bytes) -> None:
        path = f"{self._root}/{name}"
        with self._explained():
            self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._files.pipe_file(path, content)

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError), self._explained():
            self._files.rm_file(f"{self._root}/{name}")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise StorageAway for connection errors, and for errors that only the store's library knows."""
        try:
            yield
        except FileNotFoundError:
            raise
        except ANY_ERROR as error:  # boundary: botocore, for one, has classes of its own for bad credentials
            if is_machine_fault(error):
                raise
            raise StorageAway(f"{self}: {mask(' '.join(str(error).split()))}") from error


def _moment(about: dict[str, Any], ask: Callable[[], Any]) -> datetime:
    moment = about.get("LastModified") or about.get("mtime") or about.get("created")
    if moment is None:
        moment = ask()
    if isinstance(moment, int | float):
        return datetime.fromtimestamp(moment, UTC)
    when: datetime = moment
    return when if when.tzinfo else when.replace(tzinfo=UTC)
