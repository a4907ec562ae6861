"""Reading a manifest from bytes or a file: YAML or JSON, bounded before it is parsed."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .json_tree import read_json
from .problems import ROOT, ManifestError, Problem
from .tree import MAX_MANIFEST_BYTES, TreeError, check_text


class ManifestTree(dict[str, Any]):
    """A parsed manifest. `lines`: where each key is in the file, by the path that a `Problem` names."""

    lines: Mapping[str, int]


def load_manifest(data: bytes, source: str) -> ManifestTree:
    """Parse a manifest into JSON-like values: dict, list, str, int, float, bool, None.

    `data`: UTF-8, at most MAX_MANIFEST_BYTES; YAML, or JSON (always JSON when `source` ends in `.json`).
    `source`: the file or request that it came from, for messages. Raises ManifestError.
    """
    try:
        return _parse(data, json_only=source.endswith(".json"))
    except TreeError as error:
        raise ManifestError(source, [error.problem]) from None


def read_manifest(path: Path, within: Path | None = None) -> ManifestTree:
    """Read and parse one manifest file; raises ManifestError.

    A symbolic link is refused unless `within` is given and the link's target lies inside that folder, as in
    a mounted Kubernetes ConfigMap. Devices and pipes are refused, and a file over the cap is not read.
    Blocks on the disk: call it in a thread.
    """
    try:
        data = _read_capped(_target(path, within))
    except OSError as error:
        raise ManifestError(path.name, [_unreadable(error)]) from error
    except TreeError as error:
        raise ManifestError(path.name, [error.problem]) from None
    return load_manifest(data, path.name)


def _parse(data: bytes, *, json_only: bool) -> ManifestTree:
    if len(data) > MAX_MANIFEST_BYTES:
        raise _too_large(f"more than {MAX_MANIFEST_BYTES} bytes")
    text = _decode(data)
    tree = read_json(text, fall_back=not json_only) if json_only or text.lstrip()[:1] == "{" else None
    tree, lines = _read_yaml(text) if tree is None else (tree, {})
    if not isinstance(tree, dict):
        raise TreeError("The document is not an object", "Start it with apiVersion: platform.dev/v1alpha1.")
    manifest = ManifestTree(tree)
    manifest.lines = lines
    return manifest


def _read_yaml(text: str) -> tuple[Any, dict[str, int]]:
    from .yaml_tree import read_yaml

    return read_yaml(text)


def _decode(data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TreeError(
            "The document is not UTF-8 text", "Save the file with the encoding UTF-8.", line=line, column=1
        ) from None
    check_text(text)
    return text


def _too_large(size: str) -> TreeError:
    remedy = "A manifest carries parameters only; move data elsewhere."
    return TreeError(f"The document has {size}", remedy)


def _target(path: Path, within: Path | None) -> Path:
    if within is None:
        return path
    try:
        resolved = path.resolve(strict=True)
    except RuntimeError:
        raise TreeError("The file is a link to itself", "Put a plain file in its place.") from None
    if not resolved.is_relative_to(within.resolve()):
        raise TreeError(
            "The file is a link that points outside its folder", "Copy the file into the folder instead."
        )
    return resolved


def _read_capped(path: Path) -> bytes:
    """Read a regular file within the cap; O_NONBLOCK because opening a pipe would wait for a writer."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise TreeError("This is not a regular file", "Put a plain file in its place.")
        if facts.st_size > MAX_MANIFEST_BYTES:
            raise _too_large(f"{facts.st_size} bytes, more than the {MAX_MANIFEST_BYTES} allowed")
        return file.read(MAX_MANIFEST_BYTES + 1)


def _unreadable(error: OSError) -> Problem:
    reason = error.strerror or type(error).__name__
    remedy = "Check that the file exists, is readable by the platform's user and is not a symbolic link."
    return Problem(ROOT, f"The file cannot be read: {reason}", remedy)
