"""The platform's side of a prepared process: start it, pass it tasks, read how they ended."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from kernel.libs.children.messages import ChildTask, Lines, send
from kernel.process.machine_faults import MachineFault, machine_fault

log = logging.getLogger("platform.children")

_PROGRAM: Final = "kernel.libs.children.zygote"
_START_SECONDS: Final = 60.0
_SEND_SECONDS: Final = 5.0
_END_SECONDS: Final = 10.0
_LONGEST_TASK: Final = 65_536


def child_environment() -> dict[str, str]:
    """The environment of every child: where this process finds programs, and one thread only, as each takes
    address space.
    """
    return {
        "PATH": os.pathsep.join(os.get_exec_path()),
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "1",
        # Compiled code that a limit on files cuts short would break later imports.
        "PYTHONDONTWRITEBYTECODE": "1",
    }


class Ended(NamedTuple):
    """How a child ended: its exit status (negative: the signal), processor seconds, and peak memory."""

    status: int
    cpu_seconds: float
    peak_mb: int


class RunningChild:
    """A child under way."""

    def __init__(self) -> None:
        self.pid: int | None = None
        self.ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()


class PreparedProcess:
    """A prepared process. If it is lost, every running task ends with a MachineFault."""

    def __init__(self, process: asyncio.subprocess.Process, control: socket.socket) -> None:
        self._process = process
        self._control = control
        self._lines = Lines(control)
        self._running: dict[int, RunningChild] = {}
        self._count = 0
        self._ready = asyncio.get_running_loop().create_future()
        self.is_lost = False
        asyncio.get_running_loop().add_reader(control, self._receive)

    @classmethod
    async def start(cls, modules: Sequence[str]) -> PreparedProcess:
        """Start a process that imports `modules`. Raises MachineFault."""
        ours, theirs = socket.socketpair()
        ours.settimeout(_SEND_SECONDS)
        try:
            with theirs:
                process = await _spawn(theirs, modules)
        except OSError as error:
            ours.close()
            raise MachineFault(_fault(error)) from error
        self = cls(process, ours)
        try:
            async with asyncio.timeout(_START_SECONDS):
                await self._ready
        except BaseException:  # including cancellation: leave no process behind
            await self.close()
            raise
        return self

    @property
    def is_idle(self) -> bool:
        """Whether no child is running."""
        return not self._running

    def begin(self, task: ChildTask, descriptors: Sequence[int]) -> RunningChild:
        """Fork a child for the task. Raises ValueError for arguments over 64 KB: put them into a file."""
        self._count += 1
        line = task._replace(number=self._count).dump()
        if len(line) > _LONGEST_TASK:
            raise ValueError("the arguments of a child are too long; put them into a file")
        running = self._running[self._count] = RunningChild()
        try:
            sent = socket.send_fds(self._control, [line], list(descriptors))
            self._control.sendall(line[sent:])
        except OSError:
            self._lose()
        return running

    async def end(self, running: RunningChild) -> None:
        """Kill the child, if it is still running, with everything it started; returns when it is gone."""
        number = next((number for number, item in self._running.items() if item is running), None)
        if number is None:
            return
        try:
            send(self._control, {"kill": number})
            async with asyncio.timeout(_END_SECONDS):
                await asyncio.wait([running.ended])
        except (OSError, TimeoutError):
            log.error("a child process could not be stopped; its prepared process was discarded")
            self._lose()

    async def close(self) -> None:
        """End the process with all its children."""
        self._lose()
        await self._process.wait()

    def _receive(self) -> None:
        try:
            messages = self._lines.receive()
        except OSError:
            messages = None
        if messages is None:
            self._lose()
            return
        for message in messages:
            self._take(message)

    def _take(self, message: dict[str, Any]) -> None:
        for module, reason in message.get("missing", {}).items():
            log.warning("%s can't be preloaded: %s", module, reason)
        if "ready" in message:
            self._ready.set_result(None)
        if "number" not in message:
            return
        running = self._running.get(message["number"])
        if running is None:
            return
        if "pid" in message:
            running.pid = message["pid"]
            return
        del self._running[message["number"]]
        if "errno" in message:
            fault = _fault(OSError(message["errno"], "fork"))
            _settle(running, MachineFault(fault))
        else:
            _settle(running, Ended(message["status"], message["cpu_seconds"], message["peak_mb"]))

    def _lose(self) -> None:
        """Give up the process: it exits with its children when it finds its socket closed."""
        if self.is_lost:
            return
        self.is_lost = True
        asyncio.get_running_loop().remove_reader(self._control)
        self._control.close()
        if not self._ready.done():
            self._ready.set_exception(MachineFault("processes"))
        for running in self._running.values():
            # If the process was killed, nobody else ends what its children started.
            if running.pid is not None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(running.pid, signal.SIGKILL)
            _settle(running, MachineFault("processes"))
        self._running.clear()


async def _spawn(control: socket.socket, modules: Sequence[str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", _PROGRAM, str(control.fileno()), str(os.getpid()), *modules),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env=_environment(),
        pass_fds=[control.fileno()],
        start_new_session=True,
    )


def _environment() -> dict[str, str]:
    """The environment of the prepared process and its children, plus where to find modules."""
    modules = (str(Path(entry or ".").absolute()) for entry in sys.path)
    own = {"PYTHONPATH": os.pathsep.join(modules), "PYTHONUTF8": "1", "PYTHONHASHSEED": "0"}
    return child_environment() | own


def _fault(error: OSError) -> Any:
    return "processes" if error.errno == errno.EAGAIN else machine_fault(error) or "processes"


def _settle(running: RunningChild, outcome: Ended | MachineFault) -> None:
    if running.ended.done():
        return
    if isinstance(outcome, Ended):
        running.ended.set_result(outcome)
    else:
        running.ended.set_exception(outcome)
        running.ended.exception()  # marks it as retrieved: a cancelled task never does
