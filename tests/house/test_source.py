"""How the source is written, as far as it can be counted."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ("kernel", "builtin_plugins", "cli")
LONGEST_MODULE = 400


def modules(*folders: str) -> Iterator[tuple[Path, ast.Module]]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT), ast.parse(path.read_text(encoding="utf-8"))


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


def test_tests_say_what_they_hold() -> None:
    """Every test has a docstring: what must be true, not how it is looked at."""
    silent = [
        f"{path}: {node.name}"
        for path, tree in modules("tests")
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]
    assert silent == []


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
                node.type is None or getattr(node.type, "id", "") in ("Exception", "BaseException")
            )
            if broad and "#" not in lines[node.lineno - 1] and not _raises(node):
                wrong.append(f"{path}:{node.lineno}")
    assert wrong == []


def _raises(node: ast.AST) -> bool:
    return any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
