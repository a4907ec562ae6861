"""The process that forks the Python processes of tests: see `tests.fakes.prepared`.

Run as ``python -P prepared_process.py DESCRIPTOR``. It imports what a command or a server imports, and runs
nothing of it: a fork stands where a new interpreter does after its imports. It starts no threads, and ends,
with all it forked, when the process of the tests does.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

_PLUGINS = "platform.plugins"
_DISTRIBUTION = "platform-kernel"
# Imported by the platform only when they are needed, which most processes of tests come to.
_LATER = (
    "alembic.command",
    "asyncpg",
    "redis.asyncio",
    "rich.markdown",
    "rich.progress",
    "rich.table",
    "sqlalchemy.dialects.postgresql.asyncpg",
    "sqlalchemy.dialects.sqlite.aiosqlite",
    "typer.rich_utils",
    "uvloop",
)
_NOT_AHEAD = (
    "kernel.testing",
    "kernel.stores",
    "kernel.libs.children.zygote",
    "cli.__main__",
    "cli.templates",
)
_LONGEST = 1 << 20
_DESCRIPTORS = 4  # where the answer goes, then standard output, error, and perhaps input


def modules_ahead() -> Iterator[str]:
    """The kernel, the command line, and what the entry points of our plugins name."""
    for name in ("kernel", "cli"):
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not found.name.startswith(_NOT_AHEAD):
                yield found.name
    for point in metadata.distribution(_DISTRIBUTION).entry_points:
        if point.group == _PLUGINS:
            yield point.module
    yield from _LATER


class Forks:
    """Takes requests, forks, and tells how each fork ended."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._answers: dict[int, socket.socket] = {}
        self._wake, self._woken = os.pipe()
        for end in (self._wake, self._woken):
            os.set_blocking(end, False)

    def serve(self) -> Callable[[], None] | None:
        """Until the tests are over; returns in each fork as well, with what it has to do."""
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the tests, which then let go of us
        while True:
            ready, _, _ = select.select([self._control, self._wake], [], [])
            if self._wake in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake, 4096)
                self._reap()
            if self._control in ready:
                message, descriptors, _, _ = socket.recv_fds(self._control, _LONGEST, _DESCRIPTORS)
                if not message:
                    self._end_all()
                    return None
                todo = self._fork(json.loads(message), descriptors)
                if todo is not None:
                    return todo

    def _fork(self, request: dict[str, Any], descriptors: list[int]) -> Callable[[], None] | None:
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            for ours in (self._control, *self._answers.values()):
                ours.detach()  # `become` closes it; by itself it would later close another file
            return lambda: become(request, descriptors[1:])
        for descriptor in descriptors[1:]:
            os.close(descriptor)
        self._answers[pid] = socket.socket(fileno=descriptors[0])
        self._answers[pid].send(json.dumps({"pid": pid}).encode())
        return None

    def _reap(self) -> None:
        while self._answers:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            with self._answers.pop(pid) as answer, contextlib.suppress(OSError):  # nobody waits for it
                answer.send(json.dumps({"status": os.waitstatus_to_exitcode(status)}).encode())

    def _end_all(self) -> None:
        for pid in self._answers:
            os.kill(pid, signal.SIGKILL)
        for pid in self._answers:
            os.waitpid(pid, 0)


def become(request: dict[str, Any], streams: list[int]) -> None:
    """Be what a new interpreter is with these arguments, and run its module."""
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if request["session"]:
        os.setsid()
    for standard, stream in zip((1, 2, 0), streams, strict=False):
        os.dup2(stream, standard)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    os.chdir(request["folder"])
    tempfile.tempdir = None  # found again: it may be another one here
    sys.executable = request["executable"]
    sys.prefix = sys.exec_prefix = request["prefix"]
    sys.path[:] = request["path"]
    sys.orig_argv[:] = [request["executable"], *request["command"]]
    sys.argv[:] = ["-m", *request["arguments"]]
    importlib.invalidate_caches()
    _open_streams()
    runpy.run_module(request["module"], run_name="__main__", alter_sys=True)


def _open_streams() -> None:
    """As an interpreter opens them: output by lines on a terminal, errors by lines always."""
    sys.stdin = sys.__stdin__ = _like(sys.stdin, "r", os.isatty(0))
    sys.stdout = sys.__stdout__ = _like(sys.stdout, "w", os.isatty(1))
    sys.stderr = sys.__stderr__ = _like(sys.stderr, "w", True)


def _like(ours: Any, mode: str, by_lines: bool) -> Any:
    """A stream on the same descriptor; the old one knows what the descriptor was before."""
    file: Any = open(ours.fileno(), f"{mode}b", closefd=False)  # noqa: SIM115 - for good
    file.raw.name = ours.name
    found: Any = io.TextIOWrapper(file, ours.encoding, ours.errors, line_buffering=by_lines)
    found.mode = mode
    return found


def main(descriptor: str) -> Callable[[], None] | None:
    """Import, say what is there, and serve."""
    control = socket.socket(fileno=int(descriptor))
    for module in modules_ahead():
        importlib.import_module(module)
    if len(list(Path("/proc/self/task").iterdir())) != 1:
        raise RuntimeError("a library that is imported ahead has started threads, which no fork would have")
    gc.collect()
    gc.freeze()  # a collection in a fork would copy the pages of all these modules
    names = sorted({name.partition(".")[0] for name in sys.modules})
    control.send(json.dumps({"path": sys.path, "names": names}).encode())
    return Forks(control).serve()


if __name__ == "__main__":
    _todo = main(sys.argv[1])
    if _todo is not None:
        _todo()
