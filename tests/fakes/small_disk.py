"""A file system with little room, for what happens when a disk is full."""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kernel.testing import services_required

_FILLER = "filler"


class SmallDisk:
    """A mounted folder of a few megabytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, leaving: int = 0) -> None:
        """Take all the room that is left, but for so many bytes."""
        with (self.folder / _FILLER).open("ab", buffering=0) as file:
            for size in (65_536, 4_096, 1):
                _write_until_full(file.fileno(), size)
            file.truncate(file.tell() - leaving)

    def relieve(self) -> None:
        """Give the room back."""
        (self.folder / _FILLER).unlink()


def _write_until_full(descriptor: int, size: int) -> None:
    import os

    try:
        while True:
            os.write(descriptor, b"\0" * size)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[SmallDisk]:
    """A disk of this size at `folder`. Skips where nothing may be mounted, except in CI."""
    folder.mkdir()
    with _mounted(folder, f"size={megabytes}m,mode=700"):
        yield SmallDisk(folder)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Meanwhile `folder` is an empty one that can't be written, as on a disk that has had errors."""
    with _mounted(folder, "ro,mode=700"):
        yield


@contextmanager
def _mounted(folder: Path, options: str) -> Iterator[None]:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        reason = f"no file system can be mounted here: {getattr(error, 'stderr', error)}"
        if services_required():
            pytest.fail(reason)
        pytest.skip(reason)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
