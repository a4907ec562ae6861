"""One pytest that has imported and collected everything, and runs some of its tests in a fork when asked.

    python tests/mutation/warm.py FILE…

Reads one JSON object a line and answers with one; the first answer lists the tests. A request names `tests`,
a `folder` for what they leave, a file for their `output`, and what the fork may take: `processor_seconds` and
`timeout` (seconds). It may put a defect in (`defect`: a module, its text and another), or ask which tests run
which lines of some modules (`cover`, for `enough` seconds).
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, TextIO

import pytest

ROOT = Path(__file__).resolve().parents[2]
BROKEN = 70
"""The exit status of a fork in which something other than a test went wrong."""

Place = tuple[str, str, int]


class Functions:
    """The functions that modules of the checkout have made, found by their code's place."""

    def __init__(self) -> None:
        self._found: dict[Place, list[FunctionType]] = {}
        gc.unfreeze()  # what the tests' own hook has hidden from the collector
        for one in gc.get_objects():
            if isinstance(one, FunctionType) and one.__code__.co_filename.startswith(str(ROOT)):
                self._found.setdefault(_place(one.__code__), []).append(one)
        gc.freeze()

    def change(self, module: str, before: str, after: str) -> None:
        """Replace the code of `module` (`before`) with `after`, without importing anything again."""
        path = str(ROOT / module)
        texts = (compile(text, path, "exec", dont_inherit=True) for text in (before, after))
        for old, new in zip(*map(_codes, texts), strict=True):
            for function in self._found.get(_place(old), []) if old != new else ():
                function.__code__ = new


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _place(code: CodeType) -> Place:
    return code.co_filename, code.co_qualname, code.co_firstlineno


@dataclass(eq=False)  # pluggy keeps plugins in sets
class Ran:
    """What one fork says about its tests, as they come."""

    answers: TextIO
    failed: str = ""
    seconds: dict[str, float] = field(default_factory=dict)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Say which test runs: the last one that is said is the one that hangs."""
        self.say(test=nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0) + report.duration
        if report.failed and not self.failed:
            self.failed = report.nodeid
            self.say(failed=report.nodeid)

    def say(self, **what: Any) -> None:
        self.answers.write(json.dumps(what) + "\n")
        self.answers.flush()


class Warm:
    """The plugin whose loop takes requests instead of running every test."""

    def __init__(self, asks: TextIO, answers: TextIO) -> None:
        self._asks, self._answers = asks, answers

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._session = session
        self._items = {item.nodeid: item for item in session.items}
        self._functions = Functions()
        self._answer(tests=list(self._items), errors=session.testsfailed)
        for line in self._asks:
            self._answer(**self._run(json.loads(line)))
        return True

    def _answer(self, **what: Any) -> None:
        self._answers.write(json.dumps(what) + "\n")
        self._answers.flush()

    def _run(self, asked: dict[str, Any]) -> dict[str, Any]:
        ears, mouth = os.pipe()
        child = os.fork()
        if not child:
            os.close(ears)
            self._become_tests(asked, os.fdopen(mouth, "w"))
        os.close(mouth)
        began = time.monotonic()
        said, in_time = _listen(ears, child, began + asked["timeout"])
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what it has left behind, or all of it
        _, status = os.waitpid(child, 0)
        told = {"in_time": in_time, "status": os.waitstatus_to_exitcode(status), "test": "", "failed": ""}
        for line in said:
            told |= json.loads(line)
        return {**told, "took": round(time.monotonic() - began, 1)}

    def _become_tests(self, asked: dict[str, Any], answers: TextIO) -> None:
        os.setsid()
        limit = int(asked["processor_seconds"])
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        output = os.open(asked["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        code = BROKEN
        try:
            os.environ["TMPDIR"] = os.environ["PYTEST_DEBUG_TEMPROOT"] = asked["folder"]
            tempfile.tempdir = None
            if asked.get("defect"):
                self._functions.change(*asked["defect"])
            code = self._run_tests(asked, Ran(answers))
        except BaseException:  # noqa: BLE001 - boundary of the process: nobody else would say it
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _run_tests(self, asked: dict[str, Any], ran: Ran) -> int:
        self._session.config.pluginmanager.register(ran)
        items = [self._items[name] for name in asked["tests"]]
        lines = _Lines(asked["cover"]) if asked.get("cover") else None
        until = time.monotonic() + asked.get("enough", float("inf"))
        for item, following in zip(items, [*items[1:], None], strict=True):
            if lines is not None:
                lines.belong_to(item.nodeid)
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            if (ran.failed and lines is None) or time.monotonic() > until:
                break
        with suppress(Exception):
            self._session._setupstate.teardown_exact(None)  # what a break has left open
        if lines is not None:
            ran.say(seconds=ran.seconds, lines=lines.found())
        return 1 if ran.failed else 0


class _Lines:
    """Which tests run which lines."""

    def __init__(self, modules: list[str]) -> None:
        import coverage

        self._modules = modules
        include = [str(ROOT / module) for module in modules]
        self._coverage = coverage.Coverage(data_file=None, include=include, config_file=False)
        self._coverage.start()

    def belong_to(self, test: str) -> None:
        self._coverage.switch_context(test)

    def found(self) -> dict[str, dict[int, list[str]]]:
        self._coverage.stop()
        data = self._coverage.get_data()
        by_line = {module: data.contexts_by_lineno(str(ROOT / module)) for module in self._modules}
        return {module: lines for module, lines in by_line.items() if lines}


def _listen(ears: int, child: int, until: float) -> tuple[list[str], bool]:
    """The lines that a child wrote until it ended, and whether that was in time."""
    heard, ended = b"", os.pidfd_open(child)
    os.set_blocking(ears, False)
    try:
        while True:
            ready, _, _ = select.select([ears, ended], [], [], max(0.0, until - time.monotonic()))
            with suppress(BlockingIOError):
                while piece := os.read(ears, 1 << 20):
                    heard += piece
            if not ready or ended in ready:
                return heard.decode().split("\n")[:-1], bool(ready)
    finally:
        os.close(ended)
        os.close(ears)


def main() -> None:
    """Serve on what are standard input and output now; tests get others."""
    asks, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    sys.path.append(os.environ["MUTATION_LIBRARIES"])  # coverage's, behind everything else
    arguments = ["-q", "-p", "no:cacheprovider", "--capture=sys", "--tb=short", *sys.argv[1:]]
    sys.exit(pytest.main(arguments, plugins=[Warm(asks, answers)]))


if __name__ == "__main__":
    main()
