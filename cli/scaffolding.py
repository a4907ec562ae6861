"""Writes a new plugin package from the templates."""

from __future__ import annotations

import keyword
import re
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from string import Template

from cli.failures import CommandFailed, ExitCode, Refused
from kernel.plugins.loading import GROUP

TEMPLATES = Path(__file__).parent / "templates" / "plugin"
_SUFFIX = ".template"
_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_LONGEST = 50


def write_plugin(
    name: str, parent: Path, templates: Path = TEMPLATES, instead: Path | None = None
) -> list[Path]:
    """Write the package `name` into a new folder of `parent`, from these templates; returns the files.

    Templates in `instead` take the place of those of the same name.

    Raises CommandFailed for an invalid name, Refused for one that is taken.
    """
    values = _values(name)
    folder = parent / values["distribution"]
    if folder.exists():
        raise Refused(f"{folder} already exists", "Choose another name, or another folder with --into.")
    if _is_taken(values["name"]):
        problem = f"a plugin or Python module named '{values['name']}' already exists"
        raise Refused(problem, "Choose another name.")
    written = []
    for source in sorted(templates.rglob(f"*{_SUFFIX}")):
        place = source.relative_to(templates)
        target = folder / _place(place, values["name"])
        if instead is not None and (instead / place).exists():
            source = instead / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(Template(source.read_text(encoding="utf-8")).substitute(values), encoding="utf-8")
        written.append(target)
    return written


def _is_taken(name: str) -> bool:
    return find_spec(name) is not None or any(point.name == name for point in entry_points(group=GROUP))


def _values(name: str) -> dict[str, str]:
    """The template variables for the plugin."""
    if not _NAME.fullmatch(name) or len(name) > _LONGEST or keyword.iskeyword(name):
        raise CommandFailed(
            f"'{name}' can't be the name of a plugin",
            f"Use lower-case letters, digits and hyphens, a letter first, at most {_LONGEST} characters.",
            code=ExitCode.USAGE,
        )
    words = re.split("[-_]", name)
    joined = "".join(word.capitalize() for word in words)
    return {
        "name": "_".join(words),
        "distribution": "-".join(words),
        "route": "-".join(words),
        "variable": "_".join(words).upper(),
        "class_name": f"{joined}Plugin",
        "settings_name": f"{joined}Settings",
        "title": " ".join(words).capitalize(),
    }


def _place(source: Path, package: str) -> Path:
    named = {"package": package, "checks": "tests"}  # wheels leave out folders called tests
    return Path(*(named.get(part, part) for part in source.parts)).with_suffix("")
