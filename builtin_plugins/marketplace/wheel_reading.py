"""Reads an untrusted wheel; runs in a child process. None of the wheel's code is run."""

from __future__ import annotations

import ast
import re
import zipfile
import zlib
from collections.abc import Iterator
from email.parser import HeaderParser
from importlib import metadata
from pathlib import PurePosixPath
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

_MOST_FILES = 5_000
_MOST_UNPACKED = 300_000_000
_LARGEST_SOURCE = 2_000_000
_MOST_SHOWN = 20
_LONGEST = 200
_GROUP = "platform.plugins"
_PLATFORM = frozenset({"kernel", "cli", "builtin_plugins", "platform_kernel"})
_AT_EVERY_START = frozenset({"sitecustomize.py", "usercustomize.py"})
_COMPILED = (".so", ".pyd", ".dll", ".dylib", ".exe", ".pyc")
_PRIVATE = re.compile(
    r"(^|/)(\.env(\..*)?|\.git|\.ssh|id_(rsa|dsa|ecdsa|ed25519)|[^/]+\.(pem|key|p12|pfx))(/|$)"
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


# What zipfile raises for damaged, encrypted and unknown kinds of archives.
_UNREADABLE = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    NotImplementedError,
    RuntimeError,
    OSError,
)


class NoWheel(Exception):
    """The file is not what pip installs; the text says why."""


class _Installed(metadata.Distribution):
    """The package as Python will see it; another parser could be tricked into seeing other plugins."""

    def __init__(self, entry_points: str) -> None:
        self._text = entry_points

    def read_text(self, filename: str) -> str | None:
        return self._text if filename == "entry_points.txt" else None

    def locate_file(self, path: Any) -> Any:
        raise NotImplementedError


def read_wheel(path: str, filename: str) -> dict[str, Any]:
    """A wheel's metadata, and what is wrong with it; `problem` for a file that is not a wheel."""
    try:
        parse_wheel_filename(filename)
    except InvalidWheelFilename:
        return {"problem": "its name is not a wheel's file name; build one with: python -m build"}
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(archive)
    except NoWheel as error:
        return {"problem": str(error)}
    except _UNREADABLE:
        return {"problem": "it is not a readable zip archive"}


def _read(archive: zipfile.ZipFile) -> dict[str, Any]:
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    if len(entries) > _MOST_FILES or sum(entry.file_size for entry in entries) > _MOST_UNPACKED:
        raise NoWheel(f"unpacked it has more than {_MOST_FILES} files or {_MOST_UNPACKED // 1_000_000} MB")
    names = [entry.filename for entry in entries]
    headers = HeaderParser().parsestr(_text(archive, _in_info(names, "METADATA")))
    points = _entry_points(archive, names)
    return {
        "name": _short(headers["Name"]),
        "version": _short(headers["Version"]),
        "license": _license(headers),
        "plugins": sorted(points),
        "api_versions": {name: _api_version(archive, names, point) for name, point in sorted(points.items())},
        "clashes": list(_clashes(headers.get_all("Requires-Dist") or []))[:_MOST_SHOWN],
        "forbidden": list(_forbidden(names, canonicalize_name(headers["Name"] or "")))[:_MOST_SHOWN],
    }


def _in_info(names: list[str], filename: str) -> str:
    members = [name for name in names if re.fullmatch(rf"[^/]+\.dist-info/{filename}", name)]
    if len(members) != 1:
        raise NoWheel(f"it has no single {filename}")
    return members[0]


def _text(archive: zipfile.ZipFile, name: str) -> str:
    with archive.open(name) as file:
        content = file.read(_LARGEST_SOURCE + 1)
    if len(content) > _LARGEST_SOURCE:
        raise NoWheel(f"its file {name[:_LONGEST]} is too large")
    return content.decode(errors="replace")


def _short(text: object) -> str:
    return _CONTROL.sub(" ", "" if text is None else str(text)).strip()[:_LONGEST]


def _license(metadata: Any) -> str:
    """The license as the metadata names it, in whichever of its three fields."""
    stated = metadata["License-Expression"] or metadata["License"]
    classifiers = [line for line in metadata.get_all("Classifier") or () if line.startswith("License ::")]
    return _short(stated or ", ".join(line.rpartition("::")[2].strip() for line in classifiers))


def _entry_points(archive: zipfile.ZipFile, names: list[str]) -> dict[str, str]:
    """The plugins' names and where they are."""
    if not any(name.endswith(".dist-info/entry_points.txt") for name in names):
        return {}
    installed = _Installed(_text(archive, _in_info(names, "entry_points.txt")))
    try:
        plugins = {point.name: point.value for point in installed.entry_points if point.group == _GROUP}
    except (TypeError, ValueError) as error:
        raise NoWheel("its entry points can't be read") from error
    if len(plugins) > _MOST_SHOWN or any(len(name) > _LONGEST for name in plugins):
        raise NoWheel(f"it has more than {_MOST_SHOWN} plugins, or one with an overlong name")
    return plugins


def _api_version(archive: zipfile.ZipFile, names: list[str], point: str) -> str | None:
    """The plugin API that the class names; "?" where its source can't be read."""
    module, _, cls = point.partition(":")
    stem = module.strip().replace(".", "/")
    file = next((name for name in (f"{stem}.py", f"{stem}/__init__.py") if name in names), None)
    if file is None:
        return "?"
    try:
        tree = ast.parse(_text(archive, file))
    except (SyntaxError, RecursionError, MemoryError):
        return "?"
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == cls.strip():
            return _assigned(node)
    return None


def _assigned(cls: ast.ClassDef) -> str | None:
    for line in cls.body:
        targets = line.targets if isinstance(line, ast.Assign) else [getattr(line, "target", None)]
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        value = getattr(line, "value", None)
        if "api_version" in names and isinstance(value, ast.Constant):
            return _short(value.value)
    return None


def _clashes(requirements: list[str]) -> Iterator[str]:
    """Requirements that conflict with versions of packages installed here."""
    for text in requirements:
        try:
            requirement = Requirement(text)
            if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
                continue
            version = metadata.version(requirement.name)
        except InvalidRequirement:
            yield f"'{_short(text)}' is not a valid requirement"
        except metadata.PackageNotFoundError:
            continue
        else:
            if not requirement.specifier.contains(version, prereleases=True):
                needed = f"{_short(requirement.name)}{requirement.specifier}"
                yield f"it needs {needed}, the platform has {version}"


def _forbidden(names: list[str], own: str) -> Iterator[str]:
    """Files that no plugin may contain."""
    owners = metadata.packages_distributions()
    reported = set()
    for name in names:
        path = PurePosixPath(name)
        top = path.parts[0] if path.parts else ""
        module = top.removesuffix(".py")
        label = _short(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name or _CONTROL.search(name):
            yield f"{label} leads out of the package"
        elif len(path.parts) == 1 and (path.suffix == ".pth" or name in _AT_EVERY_START):
            yield f"{label} runs at every start of Python"
        elif _PRIVATE.search(name):
            yield f"{label} looks private"
        elif path.suffix.lower() in _COMPILED:
            yield f"{label} is compiled: nobody can review it"
        elif top.endswith(".data"):
            yield f"{label} is installed outside the package"
        elif module not in reported and _is_taken(module, owners.get(module, []), own):
            reported.add(module)
            yield f"{label} overwrites a module that is installed here"


def _is_taken(module: str, owners: list[str], own: str) -> bool:
    return module in _PLATFORM or any(canonicalize_name(owner) != own for owner in owners)
