"""Writes and removes manifest files for the platform. Everything here blocks on the disk."""

from __future__ import annotations

import os
from pathlib import Path

from kernel.sdk import sync

from .json_tree import read_json
from .tree import TreeError


def add_file(folder: Path, name: str, document: bytes) -> Path:
    """Durably write a new file for the plugin `name`, never over another file. Returns its path.

    The suffix is .yaml whatever the syntax: a reader of .yaml files takes JSON too. Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    temporary = _write_temporary(folder, name, document)
    try:
        return _link(folder, name, temporary)
    finally:
        temporary.unlink()
        sync(folder)


def replace_file(path: Path, document: bytes) -> Path:
    """Durably replace the file with `document`. Returns its path, which is new if the suffix was wrong.

    Raises OSError.
    """
    if path.suffix == ".json" and not _is_json(document):
        added = add_file(path.parent, path.stem, document)
        remove_file(path)
        return added
    _write_temporary(path.parent, path.stem, document).replace(path)
    sync(path.parent)
    return path


def remove_file(path: Path) -> None:
    """Durably remove the file; a missing one is not an error. Raises OSError."""
    path.unlink(missing_ok=True)
    if path.parent.is_dir():
        sync(path.parent)


def _write_temporary(folder: Path, name: str, document: bytes) -> Path:
    """Written as a dotfile, which the watch ignores."""
    temporary = folder / f".{name}.{os.getpid()}.tmp"
    with temporary.open("wb") as handle:
        handle.write(document)
        handle.flush()
        os.fsync(handle.fileno())
    return temporary


def _link(folder: Path, name: str, temporary: Path) -> Path:
    number = 1
    while True:
        target = folder / (f"{name}.yaml" if number == 1 else f"{name}-{number}.yaml")
        try:
            os.link(temporary, target)
        except FileExistsError:
            number += 1
        else:
            return target


def _is_json(document: bytes) -> bool:
    try:
        read_json(document.decode("utf-8-sig"))
    except (TreeError, UnicodeDecodeError):
        return False
    return True
