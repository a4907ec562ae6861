"""Which tests to run for a mutant: those that run its line, nearest and quickest first."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.mutation.mutants import ROOT, Mutant


@dataclass
class Covered:
    """Which tests run which lines, and how long each takes."""

    seconds: dict[str, float] = field(default_factory=dict)
    failing: set[str] = field(default_factory=set)
    _tests: dict[tuple[str, int], set[str]] = field(default_factory=dict)

    def add(self, seconds: dict[str, float], lines: dict[str, dict[str, list[str]]]) -> None:
        self.seconds |= seconds
        for module, tests_of in lines.items():
            for line, tests in tests_of.items():
                self._tests.setdefault((module, int(line)), set()).update(filter(None, tests))

    def tests_of(self, mutant: Mutant) -> set[str]:
        """The tests that run the statement of a mutant and pass without it."""
        lines = _statement(ROOT / mutant.module, mutant.line)
        return {test for line in lines for test in self._tests.get((mutant.module, line), ())} - self.failing


def _statement(path: Path, line: int) -> range:
    """The lines of the innermost statement around `line`; of a compound one only the head."""
    found = range(line, line + 1)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = getattr(node, "body", None)
            end = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            if node.lineno <= line <= end:
                found = range(node.lineno, end + 1)
    return found


def chosen(tests: Iterable[str], seconds: dict[str, float], mutant: Mutant, budget: float) -> list[str]:
    """The nearest of `tests`, and of those the quickest, as many as run in `budget` seconds."""
    close = _closeness({test.partition("::")[0] for test in tests}, mutant.module)
    first = sorted(tests, key=lambda test: (-close[test.partition("::")[0]], seconds.get(test, 1.0), test))
    some, spent = [], 0.0
    for test in first:
        if some and spent + seconds.get(test, 1.0) > budget:
            continue
        some.append(test)
        spent += seconds.get(test, 1.0)
    return some


def _closeness(files: set[str], module: str) -> dict[str, int]:
    """A file is near whose name has words of the module's, or that uses its names."""
    words = set(Path(module).stem.split("_"))
    definitions = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    tree = ast.parse((ROOT / module).read_text(encoding="utf-8"))
    defined = {node.name for node in ast.walk(tree) if isinstance(node, definitions)}

    def closeness(file: str) -> int:
        used = set(re.findall(r"\w+", (ROOT / file).read_text(encoding="utf-8")))
        named = sum(word.rstrip("s") in Path(file).stem for word in words)
        return 3 * named + len(defined & used)

    return {file: closeness(file) for file in files}


def nearest(files: Iterable[str], module: str) -> list[str]:
    close = _closeness(set(files), module)
    return sorted(close, key=lambda file: (-close[file], file))
