"""Nothing stands in the source that nobody uses: no dependency, no name, no column."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.house.test_source import ROOT, SOURCES, modules

NEEDED_BY_LIBRARIES = {"email-validator"}  # pydantic's EmailStr
NOT_IMPORTED = {"full", "local-llm", "graph-spacy", "neural-voice", "whisper", "testing"}
"""Extras of which some packages hold data, or are plugins of other programs."""
CALLED_BY_LIBRARIES = {"process_result_value", "_prepare_hook", "seekable", "self_group"}
FOR_PLUGIN_AUTHORS = (
    "kernel/testing/",
    "builtin_plugins/sources/conformance.py",
    "builtin_plugins/sources/conformance_rights.py",
    "builtin_plugins/vectors/conformance.py",
)


@cache
def words() -> Counter[str]:
    """How often each word stands in the sources, the client's and the documents among them."""
    found: Counter[str] = Counter()
    for folder in (*SOURCES, "docs"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".js", ".md"):
                found.update(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    return found


def test_dependencies_are_used() -> None:
    """Every package that is installed with the platform is imported somewhere in it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    modules_of: dict[str, set[str]] = {}
    for module, distributions in metadata.packages_distributions().items():
        for name in distributions:
            modules_of.setdefault(canonicalize_name(name), set()).add(module)
    extras = project["optional-dependencies"]
    lines = [
        *project["dependencies"],
        *(line for name in extras.keys() - NOT_IMPORTED for line in extras[name]),
    ]
    wanted = {canonicalize_name(Requirement(line).name) for line in lines} - {project["name"]}
    unused = {name for name in wanted if not any(words()[module] for module in modules_of[name])}
    assert unused == NEEDED_BY_LIBRARIES


def test_names_are_used() -> None:
    """No function, class, constant or column has a name that stands nowhere else."""
    entry_points = {
        point.attr
        for group in ("platform.plugins", "console_scripts")
        for point in metadata.entry_points(group=group)
    }
    unused = [
        f"{path}:{line} {name}"
        for path, tree in modules(*SOURCES)
        if not str(path).startswith(FOR_PLUGIN_AUTHORS) and "/migrations/" not in str(path)
        for name, line in _named(tree)
        if words()[name] == 1 and name not in CALLED_BY_LIBRARIES | entry_points
    ]
    assert unused == []


def _named(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """What a module names itself, and the line. What a decorator takes is used by it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if not node.decorator_list and not node.name.startswith("__"):
                yield node.name, node.lineno
        elif isinstance(node, ast.AnnAssign) and "Mapped[" in ast.unparse(node.annotation):
            yield ast.unparse(node.target), node.lineno
    for node in tree.body:
        for target in node.targets if isinstance(node, ast.Assign) else ():
            if isinstance(target, ast.Name) and not target.id.startswith("__"):
                yield target.id, node.lineno


def test_what_is_used_by_nobody_is_noticed() -> None:
    """A function, a class, a constant and a column are named; a decorated function is not."""
    source = """
NUMBER = 1
class Row:
    lost: Mapped[str]
def alone(): ...
@hookimpl
def taken(): ...
"""
    assert [name for name, _ in _named(ast.parse(source))] == ["Row", "alone", "lost", "NUMBER"]
