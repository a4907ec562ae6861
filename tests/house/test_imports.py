"""Modules import each other in one direction; imports for type hints and inside functions count too."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ("kernel", "builtin_plugins", "cli")

Imports = Mapping[str, frozenset[str]]


def modules(root: Path) -> dict[str, Path]:
    found = {}
    for path in (path for folder in SOURCES for path in (root / folder).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(root: Path) -> Imports:
    files = modules(root)
    return {name: frozenset(_named(name, path, files)) for name, path in files.items()}


def _named(name: str, path: Path, files: Mapping[str, Path]) -> Iterator[str]:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (item.name for item in node.names if item.name in files and item.name != name)
        elif isinstance(node, ast.ImportFrom):
            base = _base(package, node)
            for item in node.names:
                target = f"{base}.{item.name}" if f"{base}.{item.name}" in files else base
                if target in files and target != name:
                    yield target


def _base(package: str, node: ast.ImportFrom) -> str:
    """The absolute name that ``from X import …`` takes from."""
    if not node.level:
        return node.module or ""
    above = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])])


def circles(found: Imports) -> list[str]:
    """A shortest circle through each module that is in one, each circle once."""
    rings: dict[frozenset[str], list[str]] = {}
    for name in sorted(found):
        if ring := _ring(found, name):
            rings.setdefault(frozenset(ring), ring)
    return [" → ".join([*ring, ring[0]]) for ring in rings.values()]


def _ring(found: Imports, start: str) -> list[str]:
    before: dict[str, str] = {}
    waiting = deque([start])
    while waiting:
        name = waiting.popleft()
        for target in sorted(found[name]):
            if target == start:
                return _way(before, start, name)
            if target not in before:
                before[target] = name
                waiting.append(target)
    return []


def _way(before: Mapping[str, str], start: str, end: str) -> list[str]:
    way = [end]
    while way[-1] != start:
        way.append(before[way[-1]])
    return way[::-1]


def test_no_module_imports_itself_by_way_of_others() -> None:
    """A circle is named with all that is in it; break it by naming a smaller thing, or by handing it over."""
    assert circles(imports(ROOT)) == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("from kernel.b import B", "from kernel import a"),
        ("from kernel.b import B", "def f():\n    from kernel.a import A"),
        ("import kernel.b", "if TYPE_CHECKING:\n    from .a import A"),
    ],
    ids=["plain", "in a function", "type hint, relative"],
)
def test_a_circle_is_seen_and_named(tmp_path: Path, first: str, second: str) -> None:
    folder = tmp_path / "kernel"
    folder.mkdir()
    for name, text in (("__init__", ""), ("a", first), ("b", second), ("c", "from kernel import a")):
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    assert circles(imports(tmp_path)) == ["kernel.a → kernel.b → kernel.a"]
