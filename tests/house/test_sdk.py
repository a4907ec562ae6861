"""What plugins may import of the kernel: small, and all of it in use."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_NAMES = 120  # in kernel.sdk itself: what somebody who writes a first plugin has to look through
MODULES = {
    "kernel.sdk",
    *(f"kernel.sdk.{one.stem}" for one in (ROOT / "kernel/sdk").glob("*.py") if one.stem != "__init__"),
}
FOR_OTHERS = {
    "kernel.sdk.storage": {
        "Schema": "the type of what SCHEMA names",
        "Record": "the type of what a prepared statement answers",
    },
    "kernel.sdk.telemetry": {"Tracer": "the protocol of what a plugin gives Tracing"},
    "kernel.sdk.outgoing": {
        "AnswerBroken": "one of the ways in which a call fails",
        "OutgoingCall": "the type of what OUTGOING opens",
    },
    "kernel.sdk.operations": {"Fault": "the type of a machine's fault"},
}
"""Names that no built-in plugin imports, and what they are there for."""


@cache
def users() -> dict[str, dict[str, set[str]]]:
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for path in (ROOT / "builtin_plugins").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module in MODULES:
                for alias in node.names:
                    found[node.module][alias.name].add(path.relative_to(ROOT).parts[1])
    return found


@pytest.mark.parametrize("module", sorted(MODULES))
def test_all_is_listed(module: str) -> None:
    """`__all__` names what the module imports, and no other module of the SDK has the name."""
    sdk = import_module(module)
    tree = ast.parse(Path(str(sdk.__file__)).read_text(encoding="utf-8"))
    imported = [
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    assert sorted(imported) == sorted(sdk.__all__)
    others = {name for one in MODULES - {module} for name in import_module(one).__all__}
    assert not others & set(sdk.__all__)


def test_the_common_names_are_few_and_common() -> None:
    """Each name of kernel.sdk itself is used by two plugins or more."""
    names = set(import_module("kernel.sdk").__all__)
    assert len(names) <= MOST_NAMES
    assert not {name for name in names if len(users()["kernel.sdk"][name]) < 2}


@pytest.mark.parametrize("module", sorted(MODULES - {"kernel.sdk"}))
def test_rare_names_are_in_use(module: str) -> None:
    """Some plugin imports each of them, or it is there for somebody else's."""
    unused = {name for name in import_module(module).__all__ if not users()[module][name]}
    assert unused == set(FOR_OTHERS.get(module, {}))
