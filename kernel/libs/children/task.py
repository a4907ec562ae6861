"""What a forked child does: apply its limits, run its task, answer, and exit."""

from __future__ import annotations

import contextlib
import errno
import importlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any, Final, NoReturn

from kernel.libs.children.confinement import confine
from kernel.libs.children.limits import bind, die_with
from kernel.libs.children.messages import ChildTask
from kernel.process.machine_faults import machine_fault

NOT_STARTED: Final = 127
_ANSWER: Final = 3
_SAID_FRAMES: Final = -20


def run_task(task: ChildTask, descriptors: list[int], parent: int) -> NoReturn:
    """Run the task in this process, which does nothing else from now on."""
    status = NOT_STARTED
    try:
        _prepare(task, descriptors, parent)
        if task.command is not None:
            _become(task)
        status = _call(task)
    finally:
        # Immediately: no destructor or thread of another library can delay the exit or change the status.
        os._exit(status)


def _prepare(task: ChildTask, descriptors: list[int], parent: int) -> None:
    os.setpgid(0, 0)
    die_with(parent)
    _place(descriptors)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    if task.command is None:
        # A write beyond the size limit must raise an error, not end the process.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    bind(task.limits)
    if task.reach is not None:
        confine(task.reach)


def _place(descriptors: list[int]) -> None:
    """Put input, output and errors where programs expect them; a callable's answer has its own descriptor."""
    # Move them out of the way first: one may occupy another's place.
    source, answer, errors = (os.dup2(item, 100 + place) for place, item in enumerate(descriptors))
    os.dup2(source, 0)
    os.dup2(answer, _ANSWER)
    os.dup2(errors, 1)
    os.dup2(errors, 2)
    os.closerange(_ANSWER + 1, os.sysconf("SC_OPEN_MAX") if sys.platform != "linux" else 1 << 16)


def _become(task: ChildTask) -> NoReturn:
    command = task.command or []
    try:
        if task.folder is not None:
            os.chdir(task.folder)
        os.dup2(_ANSWER, 1)
        os.close(_ANSWER)
        os.execvpe(command[0], command, task.environment)
    except OSError as error:
        os.write(2, f"{command[0]}: {os.strerror(error.errno or 0)}".encode())
    os._exit(NOT_STARTED)


def _call(task: ChildTask) -> int:
    try:
        function = _load(str(task.target))
    except BaseException as error:  # noqa: BLE001 - a boundary: any import may fail in any way
        return _refuse(error, "unavailable")
    try:
        answer = json.dumps({"answer": function(*task.arguments)}).encode()
        if len(answer) > task.limits.output_bytes:
            raise OSError(errno.EFBIG, "the answer is too long")
    except BaseException as error:  # noqa: BLE001 - a boundary: a task may raise anything
        return _refuse(error, "failed")
    _write(answer)
    return 0


def _load(target: str) -> Callable[..., Any]:
    module, _, name = target.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function


def _refuse(error: BaseException, otherwise: str) -> int:
    """Report an error: briefly to the platform, in full to the log."""
    fault = None if isinstance(error, MemoryError) else machine_fault(error)
    code = getattr(error, "code", None)
    report = {
        "fault": fault,
        "reason": _reason(error) or otherwise,
        "code": code if isinstance(code, str) else None,
    }
    _write(json.dumps(report).encode())
    with contextlib.suppress(OSError, MemoryError):
        traceback.print_exception(error, limit=_SAID_FRAMES)
        sys.stderr.flush()
    return 1


def _reason(error: BaseException) -> str | None:
    if isinstance(error, MemoryError):
        return "memory"
    return "output" if isinstance(error, OSError) and error.errno == errno.EFBIG else None


def _write(answer: bytes) -> None:
    while answer:
        answer = answer[os.write(_ANSWER, answer) :]
