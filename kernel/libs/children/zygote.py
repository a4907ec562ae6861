"""The prepared process: imports modules once, then forks a child for each task and reports how it ended.

Run as ``python -m kernel.libs.children.zygote DESCRIPTOR PARENT MODULE…``. It runs no task itself, so that no
task can affect the next one. It ends with the platform and kills every child with its descendants.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from kernel.libs.children.confinement import python_files
from kernel.libs.children.limits import adopt_orphans, die_with
from kernel.libs.children.messages import ChildTask, Lines, send
from kernel.libs.children.task import run_task

_STRAY_SECONDS: Final = 0.02
_LEAVE_SECONDS: Final = 5.0


class Zygote:
    """Forks, kills and reaps children."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._lines = Lines(control)
        self._tasks: dict[int, int] = {}
        self._tried: set[str] = set()
        # The list of children may be incomplete while some end: it is read again until it is empty.
        self._patience: float | None = None
        self._wake, self._woken = os.pipe()
        for end in (self._wake, self._woken):
            os.set_blocking(end, False)

    def serve(self) -> None:
        """Serve until the platform ends."""
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _nothing)
        signal.signal(signal.SIGTERM, self._leave)
        while self._turn():
            pass

    def end_all(self) -> None:
        """Kill every child and its descendants, which become our children when their parents die."""
        deadline = time.monotonic() + _LEAVE_SECONDS
        while time.monotonic() < deadline:
            for pid in list(self._tasks):
                _kill_group(pid)
            self._kill_strays({})
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                return
            time.sleep(_STRAY_SECONDS)

    def _turn(self) -> bool:
        control = self._control.fileno()
        ready, _, _ = select.select([control, self._wake], [], [], self._patience)
        if not ready:
            self._reap()
        if self._wake in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake, 4096)
            self._reap()
        if control not in ready:
            return True
        messages = self._lines.receive()
        for message in messages or ():
            self._obey(message)
        return messages is not None

    def _obey(self, message: dict[str, Any]) -> None:
        if "kill" in message:
            for pid, number in self._tasks.items():
                if number == message["kill"]:
                    _kill_group(pid)
            return
        task, descriptors = ChildTask.load(message["task"]), self._lines.descriptors()
        try:
            missing = _import([module for module in task.ahead if module not in self._tried])
            self._tried.update(task.ahead)
            if missing:
                send(self._control, {"missing": missing})
            self._start(task, descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _start(self, task: ChildTask, descriptors: list[int]) -> None:
        try:
            pid = os.fork()
        except OSError as error:
            send(self._control, {"number": task.number, "errno": error.errno})
            return
        if pid == 0:
            signal.set_wakeup_fd(-1)
            run_task(task, descriptors, os.getppid())
        # Both sides do it, because either may run first.
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)
        self._tasks[pid] = task.number
        send(self._control, {"number": task.number, "pid": pid})

    def _reap(self) -> None:
        """Report the children that ended; kills their groups first, before their numbers can be reused."""
        pid = _ended()
        while pid:
            number = self._tasks.pop(pid, None)
            if number is not None:
                _kill_group(pid)
            _, status, usage = os.wait4(pid, 0)
            self._kill_strays(self._tasks)
            if number is not None:
                self._report(number, status, usage)
            pid = _ended()
        has_strays = pid is not None and not self._tasks
        if has_strays:
            self._kill_strays({})
        self._patience = _STRAY_SECONDS if has_strays else None

    def _report(self, number: int, status: int, usage: resource.struct_rusage) -> None:
        ended = {
            "number": number,
            "status": os.waitstatus_to_exitcode(status),
            "cpu_seconds": usage.ru_utime + usage.ru_stime,
            "peak_mb": usage.ru_maxrss // 1024,
        }
        send(self._control, ended)

    def _kill_strays(self, living: dict[int, int]) -> None:
        """Kill adopted processes of no living task: they have left their group or outlived it."""
        for pid, group in _children():
            if pid not in living and group not in living:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _leave(self, _number: int, _frame: object) -> NoReturn:
        self.end_all()
        os._exit(0)


def _nothing(_number: int, _frame: object) -> None:
    """A handler that does nothing: a signal without one would not wake the process."""


def _ended() -> int | None:
    """The number of an ended, unreaped child; 0 if there is none, None without children."""
    try:
        child = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return 0 if child is None else child.si_pid


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _children() -> list[tuple[int, int]]:
    """This process's children with their groups; empty if the system doesn't tell (macOS)."""
    try:
        listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
    except OSError:
        return []
    children = []
    for pid in map(int, listed.split()):
        with contextlib.suppress(ProcessLookupError):
            children.append((pid, os.getpgid(pid)))
    return children


def _import(modules: Sequence[str]) -> dict[str, str]:
    """Import the modules permanently; returns the errors by module."""
    missing = {}
    for module in modules:
        try:
            importlib.import_module(module)
        except Exception as error:  # noqa: BLE001 - a boundary: the task that needs the module will say so
            missing[module] = f"{type(error).__name__}: {error}"
    if modules:
        # These objects live as long as the process; without this, garbage collection in a child copies their
        # pages.
        gc.collect()
        gc.freeze()
    return missing


def main(descriptor: str, parent: str, *modules: str) -> None:
    """Import the modules, report that, and serve."""
    die_with(int(parent), signal.SIGTERM)
    adopt_orphans()
    control = socket.socket(fileno=int(descriptor))
    python_files()
    send(control, {"ready": True, "missing": _import(modules)})
    zygote = Zygote(control)
    try:
        zygote.serve()
    finally:
        zygote.end_all()


if __name__ == "__main__":
    main(*sys.argv[1:])
