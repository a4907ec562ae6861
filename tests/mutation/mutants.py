"""Mutants: where operators of cosmic-ray apply inside the functions of a module."""

from __future__ import annotations

import ast
import fnmatch
import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cosmic_ray.plugins as operators
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

ROOT = Path(__file__).resolve().parents[2]
Place = tuple[int, int]
Span = tuple[Place, Place]


@dataclass(frozen=True)
class Mutant:
    """A defect: the nth place where an operator of cosmic-ray applies in a module with this text."""

    module: str
    line: int
    operator: str
    occurrence: int
    digest: str

    def text(self) -> str | None:
        """The module with the defect; None where cosmic-ray fails, or makes what is no Python."""
        operator = operators.get_operator(self.operator)()
        try:
            made: str | None = mutate_code(_text(self.module), operator, self.occurrence)
            ast.parse(made or "")
        except (AttributeError, SyntaxError):  # at exceptions with dots; at a star before a value
            return None
        return made


def _text(module: str) -> str:
    return (ROOT / module).read_text(encoding="utf-8")


def modules_of(area: dict[str, Any]) -> list[str]:
    """The modules of an area. Raises ValueError for a pattern that finds none."""
    found: set[str] = set()
    for glob in area["modules"]:
        some = {str(path.relative_to(ROOT)) for path in ROOT.glob(glob)}
        if not some:
            raise ValueError(f"{glob} is not a module")
        found |= some
    without = area.get("without", [])
    return sorted(m for m in found if not any(fnmatch.fnmatch(m, glob) for glob in without))


def sample(area: dict[str, Any], skipped: list[str], seed: str, size: int) -> list[Mutant]:
    """One mutant of each place drawn; an area's places count alike, whichever module they are in."""
    dice = random.Random(seed)
    found = [some for module in modules_of(area) for _, some in sorted(_places(module, skipped).items())]
    return [dice.choice(some) for some in dice.sample(found, min(size, len(found)))]


def _places(module: str, skipped: list[str]) -> dict[Place, list[Mutant]]:
    """All mutants of a module, by the place that they change."""
    code = _text(module)
    tree, parsed = get_ast(code), ast.parse(code)
    rules, annotations = list(_rules(parsed)), list(_annotations(parsed))
    digest = hashlib.sha256(code.encode()).hexdigest()[:12]
    found: dict[Place, list[Mutant]] = {}
    for name in sorted(operators.operator_names()):
        kind = operators.get_operator(name)
        if kind.arguments() or any(fnmatch.fnmatchcase(name, glob) for glob in skipped):
            continue
        spots = (spot for node in ast_nodes(tree) for spot in kind().mutation_positions(node))
        for occurrence, (start, _) in enumerate(spots):
            if _within(start, rules) and not _within(start, annotations):
                found.setdefault(start, []).append(Mutant(module, start[0], name, occurrence, digest))
    return found


def _rules(tree: ast.Module) -> Iterator[Span]:
    """What runs when a function is called; what is set elsewhere is limits, not rules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from map(_span, node.body)


def _annotations(tree: ast.Module) -> Iterator[Span]:
    for node in ast.walk(tree):
        for one in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if one is not None:
                yield _span(one)


def _span(node: ast.stmt | ast.expr) -> Span:
    return (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)


def _within(place: Place, spans: list[Span]) -> bool:
    return any(first <= place < last for first, last in spans)
