"""Libraries are used through their public parts, so that their next release can be taken."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from tests.house.test_source import ROOT, SOURCES, modules, parsed

OURS = frozenset(SOURCES)
DOCUMENTED = {
    "_asdict": "a named tuple's",
    "_exit": "`os._exit`",
    "_fields": "a named tuple's",
    "_mapping": "a row's, in SQLAlchemy",
    "_replace": "a named tuple's",
    "_Element": "lxml's name for the type of elements",
}
"""Names with an underscore that their library documents for its users."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


@cache
def own_names(path: Path) -> frozenset[str]:
    """The private names that a module defines, on whatever object."""
    return frozenset(_defined(parsed(ROOT / path)))


def _defined(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_own(node.value):
            yield node.attr


def _is_own(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def used(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Private attributes of other objects, also by `getattr`, and private imports: (line, name)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and not _is_own(node.value):
            yield node.lineno, node.attr
        elif isinstance(node, ast.Call) and _name_of(node.func) in (
            "getattr",
            "setattr",
            "hasattr",
            "attrgetter",
        ):
            for given in node.args:
                if (
                    isinstance(given, ast.Constant)
                    and isinstance(given.value, str)
                    and is_private(given.value)
                ):
                    yield node.lineno, given.value
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, each.name) for each in node.names if _is_foreign(each.name))
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for each in node.names:
                if _is_foreign(f"{node.module}.{each.name}"):
                    yield node.lineno, node.module if _is_foreign(node.module) else each.name


def _name_of(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_foreign(module: str) -> bool:
    """Whether a private part of a library is imported."""
    top, *_ = parts = module.split(".")
    return top not in OURS and any(is_private(part) for part in parts) and top != "_typeshed"


def test_no_private_part_of_a_library() -> None:
    found = {
        (str(path), line, name)
        for path, tree in modules(*SOURCES)
        for line, name in used(tree)
        if name not in DOCUMENTED and name not in own_names(path)
    }
    assert found == set()


def derived() -> Iterator[tuple[type, ast.ClassDef]]:
    """Each class of ours with a library's class as an ancestor."""
    for path, tree in modules(*SOURCES):
        bodies = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef) and node.bases}
        if not bodies:
            continue
        name = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
        try:
            module = import_module(name)
        except ImportError:  # a package that is not installed here
            continue
        for body in bodies.values():
            found = getattr(module, body.name)
            if isinstance(found, type) and any(_is_librarys(base) for base in found.__mro__):
                yield found, body


def _is_librarys(base: type) -> bool:
    top = base.__module__.partition(".")[0]
    return top not in OURS and top not in sys.stdlib_module_names


def test_classes_leave_private_parts_alone() -> None:
    """Nor does a class that derives from a library's use or replace what its ancestor keeps to itself."""
    found = {
        f"{ours.__module__}.{ours.__name__}: {name}"
        for ours, body in derived()
        for name in _private_names(body)
        if any(name in vars(base) or name in _slots(base) for base in ours.__mro__ if _is_librarys(base))
        or name not in _of_ours(ours)
    }
    assert found == set()


def _private_names(body: ast.ClassDef) -> set[str]:
    """What a class defines, and what it uses of itself and of its ancestors."""
    uses = {
        node.attr
        for node in ast.walk(body)
        if isinstance(node, ast.Attribute) and (_is_own(node.value) or _name_of_call(node.value) == "super")
    }
    defines = {node.name for node in body.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    return {name for name in uses | defines if is_private(name)}


def _name_of_call(node: ast.AST) -> str:
    return _name_of(node.func) if isinstance(node, ast.Call) else ""


def _slots(base: type) -> tuple[str, ...]:
    slots = vars(base).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _of_ours(ours: type) -> set[str]:
    """The names that the class and its ancestors of ours define."""
    names: set[str] = set()
    for base in ours.__mro__:
        if base.__module__.partition(".")[0] in OURS:
            names |= own_names(Path(*base.__module__.split(".")).with_suffix(".py")) if _file(base) else set()
    return names


def _file(base: type) -> bool:
    return (ROOT / Path(*base.__module__.split(".")).with_suffix(".py")).is_file()


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("request._message", ["_message"]),
        ("getattr(request, '_message')", ["_message"]),
        ("from aiohttp.client import _Context", ["_Context"]),
        ("import aiohttp._parser", ["aiohttp._parser"]),
        ("self._mine, cls._ours, kernel.__version__", []),
    ],
)
def test_what_is_found(source: str, names: list[str]) -> None:
    assert [name for _, name in used(ast.parse(source))] == names
