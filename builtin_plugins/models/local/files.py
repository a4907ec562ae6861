"""The available GGUF files: those in ``PLATFORM_HOME/models``, and those named by a setting."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from builtin_plugins.models.names import canonical

_SUFFIX: Final = ".gguf"
_LATER_PART: Final = re.compile(r"-(?!00001)\d{5}-of-\d{5}$")
_FIRST_PART: Final = re.compile(r"-00001-of-\d{5}$")
_NOT_IN_NAMES: Final = re.compile(r"[^\w.-]+")


@dataclass(frozen=True)
class ModelFile:
    """One model on this machine. `ours`: it is in the platform's own folder, so it can be deleted."""

    name: str
    path: Path
    size: int
    modified: float
    ours: bool


def model_files(folder: Path, named: Mapping[str, Path]) -> dict[str, ModelFile]:
    """All model files by canonical name, named ones first; missing files are left out."""
    files: dict[str, ModelFile] = {}
    for name, path in [*((name, path) for name, path in named.items()), *_in(folder)]:
        try:
            facts = path.stat()
        except OSError:
            continue
        file = ModelFile(name, path, facts.st_size, facts.st_mtime, path.parent == folder)
        files.setdefault(canonical(name), file)
    return files


def named_files(text: str) -> dict[str, Path]:
    """The setting's ``name=/path/to.gguf`` or ``/path/to.gguf``, separated by commas. Raises ValueError."""
    files: dict[str, Path] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, equals, path = entry.rpartition("=")
        file = Path(path).expanduser()
        if not file.is_absolute() or file.suffix.lower() != _SUFFIX:
            raise ValueError(f"'{entry}' must be the absolute path of a .gguf file, with or without 'name='")
        files[name if equals and name else _name(file)] = file
    return files


def _in(folder: Path) -> Iterable[tuple[str, Path]]:
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix.lower() == _SUFFIX)
    except OSError:
        return []
    return [(_name(path), path) for path in files if not _LATER_PART.search(path.stem)]


def _name(path: Path) -> str:
    return _NOT_IN_NAMES.sub("-", _FIRST_PART.sub("", path.stem))
