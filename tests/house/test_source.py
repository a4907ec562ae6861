"""How the source is written, as far as it can be counted."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.house.test_sdk import MODULES

ROOT = Path(__file__).parents[2]
SOURCES = ("kernel", "builtin_plugins", "cli")
LONGEST_MODULE = 600


def modules(*folders: str) -> Iterator[tuple[Path, ast.Module]]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT), parsed(path)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_modules_say_what_they_are_for() -> None:
    """Every module that has anything in it begins with a docstring."""
    silent = [
        str(path) for path, tree in modules(*SOURCES, "tests") if tree.body and not ast.get_docstring(tree)
    ]
    assert silent == []


def test_modules_have_one_subject() -> None:
    """A module that grows past some 400 lines has more than one."""
    lengths = {
        path: len((ROOT / path).read_text(encoding="utf-8").splitlines()) for path, _ in modules(*SOURCES)
    }
    assert {str(path): length for path, length in lengths.items() if length > LONGEST_MODULE} == {}


def test_no_diary() -> None:
    """Comments give a reason; what used to be, and what is still to do, stand elsewhere."""
    marks = ("TODO", "FIXME", "XXX", "HACK")
    found = [
        f"{path}:{number}"
        for path, _ in modules(*SOURCES)
        for number, line in enumerate((ROOT / path).read_text(encoding="utf-8").splitlines(), 1)
        if "#" in line and any(mark in line.partition("#")[2] for mark in marks)
    ]
    assert found == []


def test_annotations_are_never_evaluated_early() -> None:
    """Every module with annotations defers them: types may then be imported for checking alone."""
    wrong = [
        str(path)
        for path, tree in modules(*SOURCES)
        if any(
            isinstance(node, ast.AnnAssign | ast.FunctionDef | ast.AsyncFunctionDef)
            for node in ast.walk(tree)
        )
        and "from __future__ import annotations" not in (ROOT / path).read_text(encoding="utf-8")
        and "/migrations/" not in str(path)
    ]
    assert wrong == []


def test_broad_excepts_say_why() -> None:
    """Catching everything is for boundaries, and each says that it is one (house rule 9)."""
    wrong = []
    for path, tree in modules(*SOURCES):
        lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
        for node in ast.walk(tree):
            broad = isinstance(node, ast.ExceptHandler) and (
                node.type is None
                or getattr(node.type, "id", "") in ("Exception", "BaseException", "ANY_ERROR")
            )
            if broad and "#" not in lines[node.lineno - 1] and not _raises(node):
                wrong.append(f"{path}:{node.lineno}")
    assert wrong == []


def test_no_container_in_a_module_is_changed() -> None:
    """A dict, list or set at the top of a module is a table of constants: no function changes it."""
    wrong = [f"{path}: {name}" for path, tree in modules(*SOURCES) for name in _changed_containers(tree)]
    assert wrong == []


_CHANGES = {
    "add",
    "append",
    "clear",
    "discard",
    "extend",
    "insert",
    "pop",
    "popitem",
    "remove",
    "setdefault",
    "update",
}


def _changed_containers(tree: ast.Module) -> Iterator[str]:
    made = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and isinstance(
            node.value, ast.Dict | ast.List | ast.Set | ast.DictComp | ast.ListComp | ast.SetComp | ast.Call
        )
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            own = {
                name.id
                for name in ast.walk(function)
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
            }
            for node in ast.walk(function):
                yield from (name for name in _targets(node) if name in made - own)


def _targets(node: ast.AST) -> Iterator[str]:
    if (
        isinstance(node, ast.Subscript)
        and not isinstance(node.ctx, ast.Load)
        and isinstance(node.value, ast.Name)
    ):
        yield node.value.id
    method = node.func if isinstance(node, ast.Call) else None
    if isinstance(method, ast.Attribute) and method.attr in _CHANGES and isinstance(method.value, ast.Name):
        yield method.value.id


def test_the_sample_plugin_needs_the_sdk_and_an_api() -> None:
    """Plugins by somebody else use the SDK and an `api`, and nothing else of ours."""
    found = {
        name
        for _, tree in modules("tests/fakes/sample_plugin", "tests/fakes/misbehaving_plugins")
        for node in ast.walk(tree)
        for name in _imported(node)
        if name.split(".")[0] in ("kernel", "builtin_plugins", "cli", "tests")
    }
    assert found - {"builtin_plugins.documents"} <= MODULES


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


def _raises(node: ast.AST) -> bool:
    return any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
