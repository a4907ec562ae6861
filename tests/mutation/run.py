"""How many small defects the tests notice: a random sample of cosmic-ray's, in a copy of the checkout.

See README.md beside this file.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

import coverage

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.mutation.choosing import Covered, chosen, nearest
from tests.mutation.mutants import ROOT, Mutant, modules_of, sample

BROKEN = 70  # the status of a fork in which something other than a test went wrong
Row = dict[str, Any]


class Bench:
    """A copy of the checkout, and the process whose forks run its tests."""

    def __init__(self, folder: Path, python: str, files: list[str], settings: Row) -> None:
        self._folder, self._settings = folder, settings
        self._tried, self._python = 0, python
        self._code, self._left, self._made = (folder / name for name in ("code", "left", "made"))
        for one in (self._code, self._left, self._made):
            one.mkdir()
        archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x"], cwd=self._code, input=archive, check=True)
        env = self._env = {**os.environ, "PYTHONPATH": str(self._code), "TMPDIR": str(self._made)}
        env["MUTATION_LIBRARIES"] = str(Path(coverage.__file__).parents[1])
        if not settings["postgresql"]:
            env["PLATFORM_TEST_POSTGRES"] = "postgresql://nobody@127.0.0.1:9/none"  # their tests are skipped
        self._warm = subprocess.Popen(
            [python, "tests/mutation/warm.py", *files],
            cwd=self._code,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(folder / "errors").open("w"),
            text=True,
        )
        hello = self._hear()
        if hello["errors"]:
            raise SystemExit(f"The tests can't be collected; see {folder}/errors")
        unwanted = settings["skipped_tests"] + ([] if settings["postgresql"] else ["*postgresql*"])
        self.tests: list[str] = [
            test for test in hello["tests"] if not any(fnmatch(test.lower(), glob) for glob in unwanted)
        ]

    def close(self) -> None:
        assert self._warm.stdin is not None
        self._warm.stdin.close()
        self._warm.wait()

    def cover(self, tests: list[str], modules: list[str]) -> Row:
        enough = self._settings["seconds_of_a_file"]
        return self._ask(tests, 3 * enough, cover=modules, enough=enough)

    def passes(self, tests: list[str], seconds: float) -> bool:
        """Whether tests pass one after the other without any defect."""
        answer = self._ask(tests, seconds)
        return bool(answer["in_time"] and answer["status"] == 0)

    def try_out(self, mutant: Mutant, text: str, tests: list[str], seconds: float) -> tuple[str, str]:
        """Put the defect in, run tests to the first that fails, and put the code back: the outcome, and by
        which test.
        """
        with self._defect(mutant.module, text):
            before = (ROOT / mutant.module).read_text(encoding="utf-8")
            answer = self._ask(tests, seconds, defect=(mutant.module, before, text))
        if answer["failed"]:
            return "killed", answer["failed"]
        hangs = not answer["in_time"] or answer["status"] in (-signal.SIGKILL, -signal.SIGXCPU)
        if hangs and answer["test"]:
            return "hangs", answer["test"]
        return {0: "survived"}.get(answer["status"], "unknown"), answer["test"]

    def try_cold(self, mutant: Mutant, text: str, tests: list[str], seconds: float) -> tuple[str, str]:
        """The same in its own process, which imports the defect: also what runs at an import has it."""
        left = {"TMPDIR": str(self._left), "PYTEST_DEBUG_TEMPROOT": str(self._left)}
        command = [self._python, "-m", "pytest", "-v", "-x", "-p", "no:cacheprovider", "--tb=no", *tests]
        log, status = self._folder / "cold", None
        with self._defect(mutant.module, text), log.open("w") as output:
            env = self._env | left
            with subprocess.Popen(
                command, cwd=self._code, env=env, stdout=output, stderr=output, start_new_session=True
            ) as cold:
                with suppress(subprocess.TimeoutExpired):
                    status = cold.wait(60 + 6 * seconds)
                with suppress(ProcessLookupError):
                    os.killpg(cold.pid, signal.SIGKILL)
        shutil.rmtree(self._left, ignore_errors=True)
        self._left.mkdir(exist_ok=True)
        told = log.read_text(errors="replace")
        running = re.search(r"^(tests/.+?) *\Z", told, re.MULTILINE)
        if status is None and running:
            return "hangs", running[1]
        failed = re.search(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", told, re.MULTILINE)
        return ("killed", failed[1]) if status and failed else ("survived", "")

    @contextmanager
    def _defect(self, module: str, text: str) -> Iterator[None]:
        """For the processes that a test starts; what they make of databases is not for later tests."""
        path, made = self._code / module, set(self._made.rglob("*"))
        before, times = path.read_text(encoding="utf-8"), path.stat()
        path.write_text(text, encoding="utf-8")
        self._tried += 1  # a time of its own for each: compiled files are told apart by it
        os.utime(path, (times.st_atime, times.st_mtime + 10 * self._tried))
        try:
            yield
        finally:
            path.write_text(before, encoding="utf-8")
            os.utime(path, (times.st_atime, times.st_mtime))
            for new in set(self._made.rglob("*")) - made:
                shutil.rmtree(new, ignore_errors=True) if new.is_dir() else new.unlink(missing_ok=True)

    def _ask(self, tests: list[str], seconds: float, **more: Any) -> Row:
        asked = {"tests": tests, "folder": str(self._left), "output": str(self._folder / "output"), **more}
        limits = {"processor_seconds": 20 + 3 * seconds, "timeout": 60 + 6 * seconds}
        assert self._warm.stdin is not None
        self._warm.stdin.write(json.dumps({**asked, **limits}) + "\n")
        self._warm.stdin.flush()
        answer = self._hear()
        if answer["status"] == BROKEN:
            raise SystemExit((self._folder / "output").read_text(errors="replace"))
        shutil.rmtree(self._left, ignore_errors=True)
        self._left.mkdir(exist_ok=True)
        return answer

    def _hear(self) -> Row:
        assert self._warm.stdout is not None
        line = self._warm.stdout.readline()
        if not line:
            raise SystemExit((self._folder / "errors").read_text() or "The process of the tests has ended")
        heard: Row = json.loads(line)
        return heard


class Runner:
    """Decides what becomes of mutants. Which tests run which lines is found out as it is needed."""

    def __init__(self, bench: Bench, settings: Row, kept: Path) -> None:
        self._bench, self._settings, self._kept = bench, settings, kept
        self._known = {row["key"]: row for row in _rows(kept)}
        self._modules = sorted({one for area in settings["areas"].values() for one in modules_of(area)})
        self._covered = Covered()
        self._mapped: set[str] = set()
        self._by_file: dict[str, list[str]] = {}
        for test in bench.tests:
            self._by_file.setdefault(test.partition("::")[0], []).append(test)

    def decide(self, area: Row, mutant: Mutant) -> Row:
        """What becomes of a mutant. A test counts only if it passes without the defect."""
        before, after = (ROOT / mutant.module).read_text(encoding="utf-8"), mutant.text()
        if after is None:
            return {"outcome": "unknown", "by": "", "tests": 0, "diff": []}
        diff = list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""))[2:]
        outcome, by, tried = self._outcome(lambda: self._tests(area, mutant), mutant, after)
        if outcome == "survived":
            further = partial(self._further_tests, area, mutant, tried)
            outcome, by, more = self._outcome(further, mutant, after, cold=True)
            tried = [*tried, *more]
        return {"outcome": outcome, "by": by, "tests": len(tried), "diff": diff}

    def _outcome(
        self, choose: Callable[[], list[str]], mutant: Mutant, text: str, *, cold: bool = False
    ) -> tuple[str, str, list[str]]:
        while tests := choose():
            expected = sum(self._covered.seconds.get(test, 1.0) for test in tests)
            attempt = self._bench.try_cold if cold else self._bench.try_out
            outcome, by = attempt(mutant, text, tests, expected)
            if not by or outcome == "survived" or self._passes(tests, by):
                return outcome, by, tests
            self._covered.failing.add(by)
            _say(f"unsteady {by}")
        return "survived", "", []

    def _passes(self, tests: list[str], last: str) -> bool:
        """Whether the tests to the last one pass without the defect: some rely on others that came first."""
        before = tests[: tests.index(last) + 1] if last in tests else [last]
        expected = sum(self._covered.seconds.get(test, 1.0) for test in before)
        return self._bench.passes(before, max(expected, 5))

    def _tests(self, area: Row, mutant: Mutant) -> list[str]:
        """Those that run the line; then those of the nearest files of which that isn't known.

        Files are looked through until one runs it. Where none does, processes that the nearest start may.
        """
        of_area = [file for file in self._by_file if file.startswith(tuple(area["tests"]))]
        files, first = nearest(of_area, mutant.module), self._settings["nearest"]
        near, covered = files[:first], self._covered
        for at, file in enumerate(files):
            if at >= first and covered.tests_of(mutant):
                break
            self._map(file)
        known = covered.tests_of(mutant)
        rest = [test for file in near for test in self._by_file[file] if test not in covered.failing]
        rest = [test for test in rest if not known or test not in covered.seconds]
        budget = self._settings["seconds_of_a_mutant"]
        return [
            *chosen(known, covered.seconds, mutant, budget),
            *chosen(rest, covered.seconds, mutant, budget / (2 if known else 1)),
        ]

    def _further_tests(self, area: Row, mutant: Mutant, tried: list[str]) -> list[str]:
        """Of all files of the area, those that run the line and those of which it isn't known; else all."""
        files = [file for file in self._by_file if file.startswith(tuple(area["tests"]))]
        for file in files:
            self._map(file)
        covered = self._covered
        known = covered.tests_of(mutant)
        tests = {test for file in files for test in self._by_file[file]}
        if known:
            tests = {test for test in tests if test in known or test not in covered.seconds}
        tests -= covered.failing
        return chosen(
            tests.difference(tried), covered.seconds, mutant, self._settings["seconds_of_a_survivor"]
        )

    def _map(self, file: str) -> None:
        """Which tests of a file run which lines: as it is kept, where the file is as it was."""
        if file in self._mapped:
            return
        self._mapped.add(file)
        tests = self._by_file[file]
        key = hashlib.sha256((ROOT / file).read_bytes() + json.dumps(tests).encode()).hexdigest()[:16]
        row = self._known.get(key)
        if row is None:
            answer = self._bench.cover(tests, self._modules)
            row = {"key": key, "file": file, "failed": answer["failed"]}
            row |= {"seconds": answer.get("seconds", {}), "lines": answer.get("lines", {})}
            _append(self._kept, row)
            _say(f"map      {answer['took']:6.1f} s  {file} {answer['failed']}")
        self._covered.add(row["seconds"], row["lines"])
        self._covered.failing |= {row["failed"]} - {""}


def report(rows: list[Row]) -> str:
    """The share that was noticed, with Wilson's interval of 95 %; by area; and what survived."""
    lines = [_share("all", rows)]
    areas = dict.fromkeys(row["area"] for row in rows)
    lines += [_share(area, [row for row in rows if row["area"] == area]) for area in areas]
    for row in rows:
        if row["outcome"] == "survived":
            lines += [f"survived: {row['module']}:{row['line']} {row['operator']} ({row['tests']} tests)"]
            lines += map("    {}".format, row["diff"])
    return "\n".join(lines)


def _share(name: str, rows: list[Row]) -> str:
    decided = [row for row in rows if row["outcome"] != "unknown"]
    total, noticed = len(decided), sum(row["outcome"] != "survived" for row in decided)
    if not total:
        return f"{name:8} nothing was decided"
    z, share = 1.96, noticed / total
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    half = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total**2)) / (1 + z * z / total)
    return f"{name:8} {noticed} of {total} noticed: {share:.0%} ({middle - half:.0%} to {middle + half:.0%})"


def _rows(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _append(path: Path, row: Row) -> None:
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _identity(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in Mutant.__dataclass_fields__)


def main() -> None:
    """Draw, try out what the file of results doesn't have yet, and report."""
    settings = tomllib.loads((Path(__file__).parent / "areas.toml").read_text(encoding="utf-8"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("areas", nargs="*", help="areas to try; all by default")
    parser.add_argument("--python", default=".venv/bin/python", help="the platform's environment")
    parser.add_argument("--results", type=Path, default=Path("/tmp/mutation.jsonl"))
    parser.add_argument("--map", type=Path, default=Path("/tmp/mutation-map.jsonl"))
    parser.add_argument("--again", action="store_true", help="try what has survived once more")
    parser.add_argument("--report", action="store_true", help="only say what the file of results has")
    options = parser.parse_args()
    areas = {name: settings["areas"][name] for name in options.areas or settings["areas"]}
    settings["areas"] = areas
    known = {_identity(row): row for row in _rows(options.results)}
    if not options.report:
        skipped, seed, size = (settings[name] for name in ("skipped_operators", "seed", "sample"))
        draws = {name: sample(area, skipped, f"{seed}-{name}", size) for name, area in areas.items()}
        turns = [(name, draw[n]) for n in range(size) for name, draw in draws.items() if n < len(draw)]
        waiting = [turn for turn in turns if _waits(known.get(_identity(asdict(turn[1]))), options.again)]
        with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
            files = sorted({test for area in areas.values() for test in area["tests"]})
            bench = Bench(Path(folder), str(Path(options.python).absolute()), files, settings)
            runner = Runner(bench, settings, options.map)
            for name, mutant in waiting:
                row = {"area": name, **asdict(mutant)}
                row |= runner.decide(areas[name], mutant)
                known[_identity(row)] = row
                _append(options.results, row)
                _say(f"{name:8} {row['outcome']:9} {mutant.module}:{mutant.line} {mutant.operator}")
            bench.close()
    _say(report(list(known.values())))


def _waits(row: Row | None, again: bool) -> bool:
    return row is None or (again and row["outcome"] == "survived")


if __name__ == "__main__":
    main()
