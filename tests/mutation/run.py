"""How many small defects the tests notice: a random sample of cosmic-ray's, in a copy of the checkout.

    python -m venv /tmp/mutation && /tmp/mutation/bin/pip install cosmic-ray==8.7.0
    nice -n 15 /tmp/mutation/bin/python tests/mutation/run.py --python .venv/bin/python [AREA…]

`areas.toml` says what is mutated and which tests run. A sample has one mutant of each place drawn; places
and mutants come from the seed, so that a run can be repeated. Annotations are left alone, and so are values
set outside functions: those are limits, not rules. Results are appended to a file, one JSON object a line;
what stands there is not run again. cosmic-ray is no dependency of the platform, and this is no part of CI.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import fnmatch
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import cosmic_ray.plugins as operators
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

ROOT = Path(__file__).resolve().parents[2]
Place = tuple[int, int]


@dataclass(frozen=True)
class Mutant:
    """A defect: the nth place where an operator of cosmic-ray applies in a module."""

    module: str
    line: int
    operator: str
    occurrence: int


def places(module: str, skipped: set[str]) -> dict[Place, list[Mutant]]:
    """All mutants of a module, by the place that they change."""
    code = (ROOT / module).read_text(encoding="utf-8")
    tree, off_limits = get_ast(code), list(_left_alone(ast.parse(code)))
    found: dict[Place, list[Mutant]] = {}
    for name in sorted(operators.operator_names()):
        if any(fnmatch.fnmatchcase(name, glob) for glob in skipped):
            continue
        kind = operators.get_operator(name)
        if kind.arguments():
            continue
        spots = (spot for node in ast_nodes(tree) for spot in kind().mutation_positions(node))
        for occurrence, (start, _) in enumerate(spots):
            if not any(first <= start < last for first, last in off_limits):
                found.setdefault(start, []).append(Mutant(module, start[0], name, occurrence))
    return found


def _left_alone(tree: ast.Module) -> Iterator[tuple[Place, Place]]:
    """Annotations, and statements outside functions that only set something."""
    for node in ast.walk(tree):
        wanted = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        if isinstance(node, ast.Module):
            wanted += [one for one in node.body if isinstance(one, ast.Assign | ast.AnnAssign)]
        for one in wanted:
            if one is not None:
                yield (one.lineno, one.col_offset), (one.end_lineno, one.end_col_offset)


def modules_of(area: dict[str, Any]) -> list[str]:
    found = {str(path.relative_to(ROOT)) for glob in area["modules"] for path in ROOT.glob(glob)}
    without = area.get("without", [])
    return sorted(m for m in found if not any(fnmatch.fnmatch(m, glob) for glob in without))


def sample(area: dict[str, Any], skipped: set[str], seed: str) -> list[Mutant]:
    """One mutant of each place drawn; an area's places count alike, whichever module they are in."""
    dice = random.Random(seed)
    found = [some for module in modules_of(area) for _, some in sorted(places(module, skipped).items())]
    return [dice.choice(some) for some in dice.sample(found, min(area["sample"], len(found)))]


def order(tests: list[str], module: str) -> list[str]:
    """The test files, those first whose names have words of the module's, or that use its names."""
    files = [f for t in tests for f in ([t] if t.endswith(".py") else map(str, sorted(_files(t))))]
    words = set(Path(module).stem.split("_"))
    tree = ast.parse((ROOT / module).read_text(encoding="utf-8"))
    defined = {
        n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }

    def closeness(file: str) -> int:
        used = set(re.findall(r"\w+", (ROOT / file).read_text(encoding="utf-8")))
        return 3 * sum(word.rstrip("s") in Path(file).stem for word in words) + len(defined & used)

    return sorted(files, key=closeness, reverse=True)


def _files(folder: str) -> list[Path]:
    return [path.relative_to(ROOT) for path in (ROOT / folder).rglob("test_*.py")]


class Copy:
    """A copy of the checkout in which defects are tried out, and the process whose forks run its tests."""

    def __init__(self, folder: Path, python: str, settings: dict[str, Any]) -> None:
        archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x"], cwd=folder, input=archive, check=True)
        self._folder = folder
        self._settings = settings
        self._tried = 0
        env = {**os.environ, "PYTHONPATH": str(folder)}
        listed = [python, "-c", _LIBRARIES]
        names = subprocess.run(listed, cwd=folder, env=env, check=True, capture_output=True, text=True).stdout
        self._forks = subprocess.Popen(
            [python, "tests/mutation/forks.py", *names.split()],
            cwd=folder,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        """End the process."""
        assert self._forks.stdin is not None
        self._forks.stdin.close()
        self._forks.wait()

    def try_out(self, mutant: Mutant, tests: list[str]) -> dict[str, Any]:
        """Put the defect in, run the tests to the first that fails, and put the code back."""
        path = self._folder / mutant.module
        before, times = path.read_text(encoding="utf-8"), path.stat()
        try:
            after = mutate_code(before, operators.get_operator(mutant.operator)(), mutant.occurrence)
        except AttributeError:  # cosmic-ray's own, at an exception with a dotted name
            return {**asdict(mutant), "outcome": "unknown", "by": "", "diff": []}
        assert after is not None
        path.write_text(after, encoding="utf-8")
        self._tried += 1  # a time of its own for each: compiled files are told apart by it
        os.utime(path, (times.st_atime, times.st_mtime + 10 * self._tried))
        try:
            nearest = order(tests, mutant.module)
            first = self._settings["nearest"]
            outcome, last = self._run(nearest[:first])
            if outcome == "survived" and nearest[first:] and not self._settings["narrow"]:
                outcome, last = self._run(nearest[first:])
        finally:
            path.write_text(before, encoding="utf-8")
            os.utime(path, (times.st_atime, times.st_mtime))
        changed = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
        return {**asdict(mutant), "outcome": outcome, "by": last, "diff": list(changed)[2:]}

    def _run(self, tests: list[str]) -> tuple[str, str]:
        output = self._folder / "output"
        arguments = ["-x", "-q", "-p", "no:cacheprovider", "--tb=no", *tests]
        arguments += ["-k", "not postgresql"] if self._settings["not_postgresql"] else []
        limits = {name: self._settings[name] for name in ("processor_seconds", "timeout")}
        assert self._forks.stdin is not None and self._forks.stdout is not None
        self._forks.stdin.write(json.dumps({"arguments": arguments, "output": str(output), **limits}) + "\n")
        self._forks.stdin.flush()
        code = json.loads(self._forks.stdout.readline())
        if code is None:
            return "unknown", ""
        if code in (-signal.SIGKILL, -signal.SIGXCPU):
            return "hangs", ""
        said = output.read_text(encoding="utf-8", errors="replace").splitlines()
        failed = [line for line in said if line.startswith(("FAILED", "ERROR"))]
        outcome = {0: "survived", 1: "killed"}.get(code, "killed" if failed else "unknown")
        return outcome, " ".join(failed[:1])[:200]


_LIBRARIES = """
import sys, kernel.testing, typer, uvloop
own = ("__", "kernel", "builtin_plugins", "cli", "tests")
of_pytest = ("pytest_", "xdist", "hypothesis", "_hypothesis", "schemathesis", "anyio")  # loaded by itself
print(*(name for name in sys.modules if not name.startswith(own + of_pytest)))
"""


def report(results: list[dict[str, Any]]) -> str:
    """The share that was noticed, with Wilson's interval of 95 %."""
    results = [one for one in results if one["outcome"] != "unknown"]
    noticed, total = sum(r["outcome"] != "survived" for r in results), len(results)
    if not total:
        return "nothing was run"
    z, share = 1.96, noticed / total
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    half = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total**2)) / (1 + z * z / total)
    lines = [f"{noticed} of {total} noticed: {share:.0%} ({middle - half:.0%} to {middle + half:.0%})"]
    for one in results:
        if one["outcome"] == "survived":
            lines += [
                f"survived: {one['module']}:{one['line']} {one['operator']}",
                *map("    {}".format, one["diff"]),
            ]
    return "\n".join(lines)


def main() -> None:
    settings = tomllib.loads((Path(__file__).parent / "areas.toml").read_text(encoding="utf-8"))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "areas", nargs="*", default=list(settings["areas"]), help="areas to try; all by default"
    )
    parser.add_argument("--python", default=".venv/bin/python", help="the platform's environment")
    parser.add_argument("--results", type=Path, default=Path("/tmp/mutation.jsonl"))
    parser.add_argument(
        "--narrow", action="store_true", help="run only the nearest tests; others may notice a survivor"
    )
    chosen = parser.parse_args()
    settings["narrow"] = chosen.narrow
    python = str(Path(chosen.python).absolute())
    known = (
        [json.loads(line) for line in chosen.results.read_text().splitlines()]
        if chosen.results.exists()
        else []
    )
    done = {tuple(one[name] for name in Mutant.__dataclass_fields__) for one in known}
    draws = {
        name: sample(
            settings["areas"][name], set(settings["skipped_operators"]), f"{settings['seed']}-{name}"
        )
        for name in chosen.areas
    }
    turns = [
        (name, draw[n])
        for n in range(max(map(len, draws.values())))
        for name, draw in draws.items()
        if n < len(draw)
    ]
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        copy = Copy(Path(folder), python, settings)
        for name, mutant in turns:
            if tuple(asdict(mutant).values()) in done:
                continue
            outcome = copy.try_out(mutant, settings["areas"][name]["tests"])
            known.append({"area": name, **outcome})
            with chosen.results.open("a") as file:
                file.write(json.dumps(known[-1]) + "\n")
            sys.stdout.write(
                f"{name:8} {outcome['outcome']:9} {mutant.module}:{mutant.line} {mutant.operator}\n"
            )
            sys.stdout.flush()
        copy.close()
    sys.stdout.write(report(known) + "\n")


if __name__ == "__main__":
    main()
